#pragma once
// How much the exchange of a run sends, and how much memory it needs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/report/exchange_text.h"
#include "decent/train/plan.h"

namespace decent {

/// The bytes of each bucket, padding included.
std::vector<std::int64_t> bucket_bytes(const Run& run);

/// The bytes that the exchange of worker `rank` keeps besides the weights; nothing if its method
/// does not say.
std::optional<double> exchange_memory(const Run& run, int rank);

SentFacts sent_facts(const Run& run, int workers);

/// A note if no edge uses parallel.comm_dtype_within, or none uses comm_dtype beside it.
std::optional<std::string> unused_exchange(const Run& run);

/// The largest edge, if it has more than four members; nothing if the method does not say what it
/// sends.
std::optional<LargestEdge> large_edge(const Run& run);

}  // namespace decent
