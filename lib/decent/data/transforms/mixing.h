#pragma once
// What mixup and cutmix have in common: in a batch, each sample is mixed with the one before it and
// the first with the last, and targets by the share that samples keep of themselves.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decent/data/transforms/transform.h"

namespace decent {

class Mixing : public BatchTransform {
 public:
  /// `name` is the transform's name, for messages; `options` has values of mixing_keys().
  Mixing(std::string name, const Options& options);

  std::vector<Field> fields(std::vector<Field> before, std::int64_t classes) final;
  bool changes(std::size_t field) const final { return field == input_ || field == target_; }
  void apply(std::size_t field, std::int64_t samples, std::span<const std::byte> before,
             std::span<std::byte> after, SampleRandom random) const final;

 protected:
  /// Throws UserError, see wrong(), if it cannot mix this field, which is float32.
  virtual void check_input(const Field&) {}
  /// Mixes inputs, from `in` to `out`.
  virtual void mix_input(std::span<const float> in, std::span<float> out, std::int64_t samples,
                         SampleRandom random) const = 0;
  /// The share of themselves that samples keep in mix_input() with the same random numbers.
  virtual double kept_share(SampleRandom random) const = 0;

  /// Draws from Beta(alpha, alpha).
  double draw_weight(SampleRandom& random) const;
  /// Throws UserError: "transform mixup: ..".
  [[noreturn]] void wrong(const std::string& problem) const;

 private:
  Field mixed_target(Field target, std::int64_t classes);
  void write_certain(std::span<const std::int64_t> classes, std::vector<float>& out) const;

  std::string name_;
  double alpha_;
  std::optional<std::int64_t> num_classes_;  // none: as many as the data names
  std::string field_;
  std::string target_field_;
  std::size_t input_ = 0;
  std::size_t target_ = 0;
  std::int64_t classes_ = 0;  // 0: the target holds numbers
};

/// Each sample becomes `weight` times itself and 1 - `weight` times the one before it.
void mix_by_weight(std::span<const float> in, std::span<float> out, std::int64_t samples,
                   double weight);

/// The keys that each such transform has. `alpha_meaning` says what alpha does.
std::vector<OptionKey> mixing_keys(std::string alpha_meaning);

}  // namespace decent
