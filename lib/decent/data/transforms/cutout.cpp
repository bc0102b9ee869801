#include <algorithm>
#include <utility>

#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"
#include "decent/data/transforms/image_pass.h"

namespace decent {
namespace {

// DeVries and Taylor, "Improved Regularization of Convolutional Neural Networks with Cutout", 2017:
// the middle of the hole lies anywhere in the image, so that holes at its border are smaller.
class Cutout final : public FieldTransform {
 public:
  Cutout(std::string field, ImageSize size, float fill, double probability)
      : FieldTransform("cutout", std::move(field)),
        size_(size),
        fill_(fill),
        probability_(probability) {}

  bool random() const override { return true; }

 private:
  Field changed(Field field) const override {
    expect_image(field);
    return field;
  }

  OnMask on_mask() const override { return OnMask::stays; }

  void change(HostArray& array, SampleRandom& random) const override {
    if (!random.chance(probability_)) return;
    const ImageSize whole = size_of_image(array.shape);
    const Range rows = range(whole.height, size_.height, random);
    const Range columns = range(whole.width, size_.width, random);
    const ImagePart hole{rows.begin, columns.begin, {rows.size(), columns.size()}};
    float* const values = array.as<float>().data();
    for_each_row(array.shape[0], whole, hole,
                 [&](std::int64_t row) { std::fill_n(values + row, hole.size.width, fill_); });
  }

  struct Range {
    std::int64_t begin, end;

    std::int64_t size() const { return end - begin; }
  };
  static Range range(std::int64_t extent, std::int64_t hole, SampleRandom& random) {
    const std::int64_t begin = random.integer(extent) - hole / 2;
    return {std::max<std::int64_t>(begin, 0), std::min(begin + hole, extent)};
  }

  ImageSize size_;
  float fill_;
  double probability_;
};

std::unique_ptr<SampleTransform> make_cutout(const Options& options) {
  return std::make_unique<Cutout>(
      options.get<std::string>("field"),
      image_size(options.get<std::vector<std::int64_t>>("size"), "transform cutout"),
      static_cast<float>(options.get<double>("fill")), options.get<double>("p"));
}

}  // namespace

Transform cutout_transform() {
  return {.name = "cutout",
          .meaning = "A hole in the image, its middle anywhere.",
          .keys = {size_key("Size of the hole: n or [height, width]."),
                   {.name = "fill",
                    .type = OptionType::number,
                    .meaning = "The value in the hole.",
                    .fallback = 0.0},
                   {.name = "p",
                    .type = OptionType::number,
                    .meaning = "Fraction of images to cut a hole into.",
                    .fallback = 1.0,
                    .range = within(0, 1)},
                   field_key()},
          .make = make_cutout};
}

}  // namespace decent
