#include "decent/report/exchange_text.h"

#include <spdlog/fmt/fmt.h>

#include "decent/core/text.h"
#include "decent/report/dry_run_text.h"

namespace decent {

std::string sent_text(const SentFacts& facts) {
  if (!facts.bytes) return "not known";
  std::string text = bytes_text(*facts.bytes) + " a worker and step";
  if (facts.bytes_within) text += " in edges between machines";
  if (facts.link_mbit) {
    const double seconds = *facts.bytes * 8 / (*facts.link_mbit * 1e6);
    text += fmt::format(", {:.3g} s at {:g} Mbit/s", seconds, *facts.link_mbit);
  }
  if (facts.bytes_within) text += "; " + bytes_text(*facts.bytes_within) + " in edges within";
  return text;
}

std::string method_text(const SentFacts& facts) {
  return facts.slices == 1 ? facts.method : facts.method + ", " + counted(facts.slices, "slice");
}

std::string large_edge_note(const LargestEdge& edge) {
  return fmt::format(
      "in an edge of {} each member sends {} a step, {:.3g} times what a member of a pair does; "
      "parallel.topology: one-peer-exp exchanges in pairs",
      edge.members, bytes_text(edge.bytes), edge.pairs);
}

}  // namespace decent
