#include "decent/pt2/analyse/declared.h"

#include <vector>

#include "decent/core/text.h"

namespace decent::pt2 {

std::string declared_text(const TensorMeta& meta) {
  std::vector<std::string> parts;
  for (const SymInt& size : meta.sizes) {
    parts.push_back(size.value ? std::to_string(*size.value) : symbol_of(size).value_or("?"));
  }
  return "[" + join(parts) + "]";
}

}  // namespace decent::pt2
