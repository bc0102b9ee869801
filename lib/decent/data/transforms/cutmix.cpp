// CutMix (Yun and others, "CutMix: Regularization Strategy to Train Strong Classifiers with
// Localizable Features", arXiv 1905.04899), as torchvision.transforms.v2.CutMix has it.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "decent/core/text.h"
#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/image_pass.h"
#include "decent/data/transforms/mixing.h"

namespace decent {
namespace {

// Begin and size of the part of [middle - half, middle + half) that is in the image.
std::pair<std::int64_t, std::int64_t> side_around(std::int64_t middle, double half,
                                                  std::int64_t extent) {
  const auto reach = static_cast<std::int64_t>(half);
  const std::int64_t begin = std::max<std::int64_t>(middle - reach, 0);
  return {begin, std::min(middle + reach, extent) - begin};
}

class Cutmix final : public Mixing {
 public:
  explicit Cutmix(const Options& options) : Mixing("cutmix", options) {}

 private:
  // Targets are mixed by themselves, so the size of images must be known without them.
  void check_input(const Field& field) override {
    const std::string its = "field '" + field.name + "' is float32" + shape_text(field.shape);
    if (field.shape.size() != 3)
      wrong(its + " a sample; expected images [channels, height, width]");
    if (!field.fixed()) {
      wrong("field '" + field.name +
            "' has images of any size; put a transform in front that gives them one size: resize "
            "and center_crop, or random_resized_crop");
    }
    size_ = size_of_image(field.shape);
  }

  void mix_input(std::span<const float> in, std::span<float> out, std::int64_t samples,
                 SampleRandom random) const override {
    const ImagePart box = draw_box(random);
    const std::size_t each = in.size() / static_cast<std::size_t>(samples);
    const std::int64_t channels = std::ssize(in) / samples / (size_.height * size_.width);
    std::copy(in.begin(), in.end(), out.begin());
    const float* partner = in.data() + (in.size() - each);
    for (std::size_t begin = 0; begin < in.size(); begin += each) {
      float* const own = out.data() + begin;
      for_each_row(channels, size_, box, [&](std::int64_t row) {
        std::copy_n(partner + row, box.size.width, own + row);
      });
      partner = in.data() + begin;
    }
  }

  double kept_share(SampleRandom random) const override {
    const ImageSize box = draw_box(random).size;
    return 1 - static_cast<double>(box.width * box.height) /
                   static_cast<double>(size_.height * size_.width);
  }

  // A box whose area is the share of the image that Beta(alpha, alpha) gives the other sample, cut
  // off at the border of the image.
  ImagePart draw_box(SampleRandom& random) const {
    const double half = 0.5 * std::sqrt(1 - draw_weight(random));
    const std::int64_t x = random.integer(size_.width);
    const std::int64_t y = random.integer(size_.height);
    const auto [left, width] = side_around(x, half * static_cast<double>(size_.width), size_.width);
    const auto [top, height] =
        side_around(y, half * static_cast<double>(size_.height), size_.height);
    return {top, left, {height, width}};
  }

  ImageSize size_;
};

}  // namespace

Transform cutmix_transform() {
  return {.name = "cutmix",
          .meaning =
              "Training only: each image of a batch gets a box of the one before it, at the same "
              "place; its area is drawn from Beta(alpha, alpha) for each batch, and y is mixed by "
              "the share of the area. Classes become probabilities.",
          .keys = mixing_keys(
              "Above zero. The smaller it is, the more boxes are almost empty or almost the whole "
              "image."),
          .make_for_batches = [](const Options& options) -> std::unique_ptr<BatchTransform> {
            return std::make_unique<Cutmix>(options);
          }};
}

}  // namespace decent
