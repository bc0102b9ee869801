#pragma once
// Weighted sampling, as torch.utils.data.WeightedRandomSampler does it, but as a pure function of
// (seed, epoch, position): any thread of any worker may ask for any place of any epoch, and every
// machine gets the same samples, bit for bit.
//
// Weights are kept as whole numbers with a sum of about 2^62, so that no result depends on how a
// floating-point function rounds. With replacement, a draw is a random number in [0, sum), and the
// sample is the one whose weight covers it. Without replacement, sample i gets the key E_i / w_i,
// where E_i is exponential with mean 1, and the samples come in ascending order of their keys:
// Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (Information Processing
// Letters, 2006). torch.multinomial does the same. The E_i come from comparisons of random numbers
// alone: von Neumann, "Various techniques used in connection with random digits" (1951).

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace decent {

/// The order in which samples are drawn by their weights. All functions may be called from any
/// thread.
class WeightedOrder {
 public:
  /// `weights` has a finite number >= 0 for each sample, at least one of them above 0. A weight
  /// above 0 counts as at least 2^-62 of the sum. Keeps 8 bytes for each sample.
  WeightedOrder(std::span<const double> weights, bool replacement, std::uint64_t seed);

  /// The samples of weight 0.
  std::int64_t never_drawn() const { return never_drawn_; }
  /// The number of draws in an epoch: with replacement as many as there are samples, without it one
  /// for each sample of a weight above 0.
  std::int64_t epoch_size() const;

  /// Puts the sample that is drawn there in the place of each position, in [0, epoch_size()), of
  /// epoch number `epoch`. With replacement a draw takes O(log n). Without it, the order of an
  /// epoch is made when it is first asked for, which takes O(n log n) and 16 bytes for each sample;
  /// the orders of two epochs are kept, with 8 bytes for each sample.
  void draw(std::int64_t epoch, std::span<std::int64_t> positions) const;

 private:
  using Samples = std::vector<std::int64_t>;
  struct Epoch {
    std::int64_t number = 0;
    std::shared_ptr<const Samples> order = nullptr;
  };

  std::uint64_t key_of(std::int64_t epoch) const;
  std::int64_t sample_at(std::uint64_t key, std::int64_t position) const;
  Samples order_of(std::int64_t epoch) const;
  std::shared_ptr<const Samples> kept_order_of(std::int64_t epoch) const;

  std::vector<std::uint64_t> ends_;  // by sample: the sum of the weights up to and with its own
  std::int64_t never_drawn_ = 0;
  bool replacement_;
  std::uint64_t seed_;
  mutable std::mutex mutex_;
  // Two, since batches of the next epoch are read ahead while this one is trained on.
  mutable std::array<Epoch, 2> epochs_ = {};
};

}  // namespace decent
