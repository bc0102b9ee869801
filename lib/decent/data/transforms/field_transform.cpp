#include "decent/data/transforms/field_transform.h"

#include <algorithm>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

// Calls `change` with a mask as an image of one channel; float32 holds all classes exactly.
template <class Change>
void change_as_image(HostArray& mask, const Change& change) {
  thread_local HostArray image;
  const std::span<const std::int64_t> classes = mask.as<const std::int64_t>();
  image.dtype = DType::float32;
  image.shape = {1, mask.shape.at(0), mask.shape.at(1)};
  image.bytes.resize(classes.size() * sizeof(float));
  std::transform(classes.begin(), classes.end(), image.as<float>().begin(),
                 [](std::int64_t value) { return static_cast<float>(value); });
  change(image);
  const std::span<const float> values = image.as<const float>();
  mask.shape = {image.shape[1], image.shape[2]};
  mask.bytes.resize(values.size() * sizeof(std::int64_t));
  std::transform(values.begin(), values.end(), mask.as<std::int64_t>().begin(),
                 [](float value) { return static_cast<std::int64_t>(value); });
}

}  // namespace

std::size_t find_field(const std::vector<Field>& fields, const std::string& name,
                       const std::string& transform) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (field.name == name) return names.size();
    names.push_back(field.name);
  }
  throw UserError("transform " + transform + ": the data has no field '" + name +
                  "'; it has: " + join(names));
}

std::vector<Field> FieldTransform::fields(std::vector<Field> before) {
  index_ = find_field(before, field_, name_);
  before[index_] = changed(std::move(before[index_]));
  const auto mask = std::find_if(before.begin(), before.end(),
                                 [&](const Field& each) { return each.mask_of == field_; });
  if (mask == before.end() || on_mask() == OnMask::stays) return before;
  if (on_mask() == OnMask::refused) {
    wrong("it takes no images with masks, and field '" + mask->name + "' is the mask of '" +
          field_ + "'; leave it out");
  }
  mask_ = static_cast<std::size_t>(mask - before.begin());
  const ImageSize size = size_of_image(before[index_].shape);
  mask->shape = {size.height, size.width};
  return before;
}

void FieldTransform::apply(std::vector<HostArray>& sample, SampleRandom& random) const {
  if (!mask_) return change(sample[index_], random);
  SampleRandom same = random;
  change(sample[index_], random);
  change_as_image(sample[*mask_], [&](HostArray& mask) { change_mask(mask, same); });
}

void FieldTransform::expect_image(const Field& field) const {
  const std::string its = "field '" + field.name + "' is " + std::string(name_of(field.dtype)) +
                          shape_text(field.shape);
  if (field.shape.size() != 3)
    wrong(its + "; expected an image, float32 [channels, height, width]");
  if (field.dtype != DType::float32) wrong(its + "; " + float32_expected(field.dtype));
}

void FieldTransform::expect_colors(const Field& field) const {
  expect_image(field);
  if (field.shape[0] == 1 || field.shape[0] == 3) return;
  wrong("field '" + field.name + "' has " + std::to_string(field.shape[0]) +
        " channels; expected 1 or 3");
}

void FieldTransform::wrong(const std::string& problem) const {
  throw UserError("transform " + name_ + ": " + problem);
}

std::string float32_expected(DType given) {
  const bool bytes = given == DType::uint8;
  return std::string("expected float32") + (bytes ? ": put to_float in front of it" : "");
}

OptionKey field_key() {
  return {.name = "field",
          .type = OptionType::text,
          .meaning = "The field that is changed.",
          .fallback = std::string("x")};
}

}  // namespace decent
