#include "decent/comm/launchers/slurm_lists.h"

#include <charconv>

namespace decent {
namespace {

// Takes a number of at least 1 from the front of the text; 0 where there is none.
int take_count(std::string_view& text) {
  int value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, failed] = std::from_chars(text.data(), last, value);
  if (failed != std::errc() || value < 1) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

}  // namespace

std::string first_slurm_host(std::string_view hosts) {
  std::string first;
  while (!hosts.empty() && hosts.front() != ',') {
    if (!take(hosts, "[")) {
      first += hosts.front();
      hosts.remove_prefix(1);
      continue;
    }
    const std::size_t close = hosts.find(']');
    const std::size_t number_end = hosts.find_first_of("-,]");
    if (close == std::string_view::npos || number_end == 0) return "";
    first += hosts.substr(0, number_end);
    hosts.remove_prefix(close + 1);
  }
  return first.find(']') == std::string::npos ? first : "";
}

std::optional<int> slurm_tasks_on_node(std::string_view tasks, int node) {
  for (int begin = 0; !tasks.empty();) {
    const int count = take_count(tasks);
    int nodes = 1;
    if (take(tasks, "(x")) {
      nodes = take_count(tasks);
      if (!take(tasks, ")")) return std::nullopt;
    }
    const bool well_formed = count > 0 && nodes > 0 && (tasks.empty() || take(tasks, ","));
    if (!well_formed) return std::nullopt;
    if (node - begin < nodes) return count;
    begin += nodes;
  }
  return std::nullopt;
}

}  // namespace decent
