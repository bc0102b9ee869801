#include "decent/data/source.h"

namespace decent {

std::optional<std::size_t> Source::field_index(std::string_view name) const {
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == name) return i;
  }
  return std::nullopt;
}

void Source::read_one(std::size_t field, std::int64_t index, HostArray& out) const {
  const Field& its = fields()[field];
  out.dtype = its.dtype;
  out.shape = its.shape;
  out.bytes.resize(its.sample_bytes());
  read(field, {&index, 1}, out.bytes.data());
}

}  // namespace decent
