#include <algorithm>
#include <utility>

#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"

namespace decent {
namespace {

class Flip final : public GeometricTransform {
 public:
  Flip(std::string field, double probability, bool vertical)
      : GeometricTransform("flip", std::move(field)),
        probability_(probability),
        vertical_(vertical) {}

  bool random() const override { return true; }

 private:
  Field changed(Field field) const override {
    expect_image(field);
    return field;
  }

  void move(HostArray& array, PixelKind, SampleRandom& random) const override {
    if (!random.chance(probability_)) return;
    const ImageShape shape(array.shape);
    float* values = array.as<float>().data();
    for (std::int64_t c = 0; c < shape.channels; ++c, values += shape.height * shape.width)
      vertical_ ? turn_over(values, shape) : mirror(values, shape);
  }

  static void mirror(float* plane, const ImageShape& shape) {
    for (std::int64_t y = 0; y < shape.height; ++y, plane += shape.width)
      std::reverse(plane, plane + shape.width);
  }

  static void turn_over(float* plane, const ImageShape& shape) {
    for (std::int64_t y = 0; y < shape.height / 2; ++y) {
      float* upper = plane + y * shape.width;
      std::swap_ranges(upper, upper + shape.width, plane + (shape.height - 1 - y) * shape.width);
    }
  }

  double probability_;
  bool vertical_;
};

std::unique_ptr<SampleTransform> make_flip(const Options& options) {
  return std::make_unique<Flip>(options.get<std::string>("field"), options.get<double>("p"),
                                options.get<std::string>("direction") == "vertical");
}

}  // namespace

Transform flip_transform() {
  return {.name = "flip",
          .meaning = "Some images mirrored.",
          .keys = {{.name = "p",
                    .type = OptionType::number,
                    .meaning = "Fraction of images to mirror.",
                    .fallback = 0.5,
                    .range = within(0, 1)},
                   {.name = "direction",
                    .type = OptionType::text,
                    .meaning = "`horizontal` exchanges left and right, `vertical` top and bottom.",
                    .fallback = std::string("horizontal"),
                    .names = {"horizontal", "vertical"}},
                   field_key()},
          .make = make_flip};
}

}  // namespace decent
