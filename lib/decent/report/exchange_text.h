#pragma once
// Texts about the exchange of a run: the bytes that it sends and how long sending takes.

#include <cstdint>
#include <optional>
#include <string>

namespace decent {

/// What one worker sends in one step, on average over workers and phases.
struct SentFacts {
  std::string method;  // parallel.comm_dtype and comm_dtype_within
  std::int64_t slices = 1;
  std::optional<double> bytes = {};      // nothing: the method does not say
  std::optional<double> link_mbit = {};  // speed of a worker's link, in 10^6 bits a second
  /// Bytes in edges within a machine, which `bytes` then excludes; nothing: `bytes` has all.
  std::optional<double> bytes_within = {};
};

/// "3.1 MiB a worker and step, 0.13 s at 200 Mbit/s", or "not known"; if edges within machines are
/// listed apart, "3.1 MiB a worker and step in edges between machines, 0.13 s at 200 Mbit/s; 40.0
/// MiB in edges within".
std::string sent_text(const SentFacts& facts);

/// "modulo2, 4 slices".
std::string method_text(const SentFacts& facts);

/// What each member of the largest edge sends in a step.
struct LargestEdge {
  int members = 1;
  double bytes = 0;
  double pairs = 1;  // the bytes as a multiple of those that a member of a pair sends
};

/// A note that a topology of pairs sends less.
std::string large_edge_note(const LargestEdge& edge);

}  // namespace decent
