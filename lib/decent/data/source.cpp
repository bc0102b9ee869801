#include "decent/data/source.h"

namespace decent {

std::optional<std::size_t> Source::field_index(std::string_view name) const {
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace decent
