#pragma once
// Arguments and enumerations, from the JSON of an exported program. Anything that does not follow
// the schema throws UserError naming the place.

#include <string>
#include <vector>

#include "decent/pt2/json/document.h"
#include "decent/pt2/program/argument.h"

namespace decent::pt2 {

Argument parse_argument(Json json);
TensorArgument parse_tensor_argument(Json json);
CustomObjArgument parse_custom_obj(Json json);
ScalarType parse_scalar_type(Json json);
Layout parse_layout(Json json);
Device parse_device(Json json);

/// A list whose values are read by `parse`.
template <typename Parse>
auto parse_list(Json json, Parse parse) {
  std::vector<decltype(parse(json))> items;
  for (const Json item : json.list()) items.push_back(parse(item));
  return items;
}

std::vector<std::string> parse_texts(Json json);
std::vector<std::int64_t> parse_integers(Json json);

}  // namespace decent::pt2
