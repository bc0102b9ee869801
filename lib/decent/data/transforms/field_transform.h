#pragma once
// Transforms that change one field and look at no other, as all transforms of samples in this
// library do. If the field is an image with a mask (Field::mask_of), the mask follows it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/data/transforms/image_pass.h"
#include "decent/data/transforms/transform.h"

namespace decent {

/// What a transform of images does to their masks.
enum class OnMask {
  refused,  // it takes no images with masks
  stays,    // all pixels stay at their places
  follows,  // the mask's pixels move as the image's do
};

class FieldTransform : public SampleTransform {
 public:
  /// `name` and `field` are the transform's and the field's names, for messages.
  FieldTransform(std::string name, std::string field)
      : name_(std::move(name)), field_(std::move(field)) {}

  std::vector<Field> fields(std::vector<Field> before) final;
  void apply(std::vector<HostArray>& sample, SampleRandom& random) const final;

 protected:
  /// The field after the transform. Throws UserError, see wrong().
  virtual Field changed(Field field) const = 0;
  virtual void change(HostArray& array, SampleRandom& random) const = 0;

  virtual OnMask on_mask() const { return OnMask::refused; }
  /// For OnMask::follows: changes the mask as an image of one channel. The random numbers are those
  /// that `change` draws.
  virtual void change_mask(HostArray& /*mask*/, SampleRandom& /*random*/) const {}

  /// Throws UserError for anything but float32 [channels, height, width].
  void expect_image(const Field& field) const;
  /// The same, also for images that have neither 1 nor 3 channels.
  void expect_colors(const Field& field) const;
  /// Throws UserError: "transform resize: ..".
  [[noreturn]] void wrong(const std::string& problem) const;

  const std::string& field() const { return field_; }

 private:
  std::string name_;
  std::string field_;
  std::size_t index_ = 0;
  std::optional<std::size_t> mask_;  // the field of the mask that follows
};

/// A transform that moves the pixels of an image and of its mask.
class GeometricTransform : public FieldTransform {
 public:
  using FieldTransform::FieldTransform;

 protected:
  /// Moves the pixels of an image, whose values are of that kind.
  virtual void move(HostArray& image, PixelKind kind, SampleRandom& random) const = 0;

 private:
  void change(HostArray& array, SampleRandom& random) const final {
    move(array, PixelKind::colors, random);
  }
  OnMask on_mask() const final { return OnMask::follows; }
  void change_mask(HostArray& mask, SampleRandom& random) const final {
    move(mask, PixelKind::classes, random);
  }
};

/// The number of the field of that name. Throws UserError in the name of the transform.
std::size_t find_field(const std::vector<Field>& fields, const std::string& name,
                       const std::string& transform);

/// "expected float32", for a field of another type, and how to convert bytes to float32.
std::string float32_expected(DType given);

/// The key `field` that each of them has.
OptionKey field_key();

/// The extents of an image [channels, height, width].
struct ImageShape {
  std::int64_t channels, height, width;

  explicit ImageShape(const std::vector<std::int64_t>& shape)
      : channels(shape.at(0)), height(shape.at(1)), width(shape.at(2)) {}
};

}  // namespace decent
