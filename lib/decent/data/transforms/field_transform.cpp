#include "decent/data/transforms/field_transform.h"

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {

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
  return before;
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
