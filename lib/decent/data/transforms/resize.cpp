#include <utility>

#include "decent/core/text.h"
#include "decent/data/images/decode.h"
#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"
#include "decent/data/transforms/image_pass.h"

namespace decent {
namespace {

class Resize final : public GeometricTransform {
 public:
  Resize(std::string field, const std::vector<std::int64_t>& size)
      : GeometricTransform("resize", std::move(field)),
        shorter_(size.size() == 1),
        size_(image_size(size, "transform resize")) {}

 private:
  Field changed(Field field) const override {
    expect_image(field);
    const ImageSize size = size_of_image(field.shape);
    const bool known = size.height != kAnyExtent && size.width != kAnyExtent;
    const ImageSize after = !shorter_ ? size_
                            : known   ? with_shorter_side(size, size_.height)
                                      : ImageSize{kAnyExtent, kAnyExtent};
    field.shape = {field.shape[0], after.height, after.width};
    return field;
  }

  void move(HostArray& array, PixelKind kind, SampleRandom&) const override {
    const ImageSize size = size_of_image(array.shape);
    const ImageSize after = shorter_ ? with_shorter_side(size, size_.height) : size_;
    if (after.height * after.width > kMostPixels) {
      wrong("an image of " + shape_text(std::vector{size.height, size.width}) + " would become " +
            shape_text(std::vector{after.height, after.width}) + ", more than " +
            counted(kMostPixels, "pixel"));
    }
    resize_part(array, {0, 0, size}, after, kind);
  }

  bool shorter_;  // only the shorter side is given
  ImageSize size_;
};

}  // namespace

Transform resize_transform() {
  return {.name = "resize",
          .meaning = "Images of another size, bilinear with antialiasing.",
          .keys = {size_key("n: the shorter side becomes n, and the other one follows in "
                            "proportion; [height, width]: exactly this size."),
                   field_key()},
          .make = [](const Options& options) -> std::unique_ptr<SampleTransform> {
            return std::make_unique<Resize>(options.get<std::string>("field"),
                                            options.get<std::vector<std::int64_t>>("size"));
          }};
}

}  // namespace decent
