#pragma once
// Batches of about as many tokens, for samples of different lengths that are padded to the longest
// of their batch.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace decent {

/// Batches of samples of similar lengths, measured as by fairseq's --max-tokens: the samples come
/// in a random order that depends only on the seed and on their number, are sorted by length
/// (samples of one length stay in that order), and a batch takes the next samples until another one
/// would make it too large. Immutable: calls may come from any thread at once.
class TokenBatches {
 public:
  /// `lengths` has the tokens of each sample, from 1 to `tokens`. A batch of n samples, the longest
  /// of which has L tokens, has n L <= `tokens`. Without a seed the samples are taken as they come.
  /// Keeps 8 bytes for each sample and each batch.
  TokenBatches(std::span<const std::int32_t> lengths, std::int64_t tokens,
               std::optional<std::uint64_t> seed);

  /// The number of batches.
  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  /// The samples of a batch on average.
  double mean_samples() const {
    return static_cast<double>(order_.size()) / static_cast<double>(ends_.size());
  }
  /// The numbers of the samples of one batch, in the order of their lengths.
  std::span<const std::int64_t> batch(std::int64_t number) const;
  /// A batch with a sample of the largest length, which may need the most memory.
  std::span<const std::int64_t> longest() const { return batch(longest_); }

 private:
  std::vector<std::int64_t> order_;  // all samples
  std::vector<std::int64_t> ends_;   // by batch: the place in order_ after its last sample
  std::int64_t longest_ = 0;         // the number of that batch
};

}  // namespace decent
