#include "decent/data/transforms/field_transform.h"

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {

std::vector<Field> FieldTransform::fields(std::vector<Field> before) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < before.size(); ++i) {
    names.push_back(before[i].name);
    if (before[i].name != field_) continue;
    index_ = i;
    before[i] = changed(std::move(before[i]));
    return before;
  }
  wrong("the data has no field '" + field_ + "'; it has: " + join(names));
}

void FieldTransform::expect_image(const Field& field) const {
  const std::string its = "field '" + field.name + "' is " + std::string(name_of(field.dtype)) +
                          shape_text(field.shape);
  if (field.shape.size() != 3)
    wrong(its + "; expected an image, float32 [channels, height, width]");
  if (field.dtype != DType::float32) {
    const bool bytes = field.dtype == DType::uint8;
    wrong(its + "; expected float32" + (bytes ? ": put to_float in front of it" : ""));
  }
}

void FieldTransform::wrong(const std::string& problem) const {
  throw UserError("transform " + name_ + ": " + problem);
}

OptionKey field_key() {
  return {.name = "field",
          .type = OptionType::text,
          .meaning = "The field that is changed.",
          .fallback = std::string("x")};
}

}  // namespace decent
