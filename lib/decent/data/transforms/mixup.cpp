// mixup (Zhang and others, "mixup: Beyond Empirical Risk Minimization", arXiv 1710.09412), as
// torchvision.transforms.v2.MixUp has it.

#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/mixing.h"

namespace decent {
namespace {

class Mixup final : public Mixing {
 public:
  explicit Mixup(const Options& options) : Mixing("mixup", options) {}

 private:
  void mix_input(std::span<const float> in, std::span<float> out, std::int64_t samples,
                 SampleRandom random) const override {
    mix_by_weight(in, out, samples, draw_weight(random));
  }
  double kept_share(SampleRandom random) const override { return draw_weight(random); }
};

}  // namespace

Transform mixup_transform() {
  return {.name = "mixup",
          .meaning =
              "Training only: each sample of a batch is mixed with the one before it, x and "
              "y, as weight * own + (1 - weight) * other, the weight drawn from "
              "Beta(alpha, alpha) for each batch. Classes become probabilities.",
          .keys = mixing_keys(
              "Above zero. The smaller it is, the nearer the mixing weights are to 0 and 1."),
          .make_for_batches = [](const Options& options) -> std::unique_ptr<BatchTransform> {
            return std::make_unique<Mixup>(options);
          }};
}

}  // namespace decent
