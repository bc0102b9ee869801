#include "decent/data/batch.h"

#include <ATen/ops/empty.h>

#include <cassert>
#include <cstring>
#include <map>
#include <numeric>
#include <vector>

#include "decent/core/torch_dtype.h"

namespace decent {
namespace {

void copy(const at::Tensor& from, const at::Tensor& to) {
  if (from.nbytes() > 0) std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
}

}  // namespace

at::Tensor empty_batch(DType dtype, std::int64_t samples, std::span<const std::int64_t> shape,
                       HostMemory memory) {
  std::vector<std::int64_t> extents = {samples};
  extents.insert(extents.end(), shape.begin(), shape.end());
  return at::empty(
      extents, at::TensorOptions(scalar_type(dtype)).pinned_memory(memory == HostMemory::pinned));
}

Batch read_batch(const Source& source, std::span<const std::size_t> fields,
                 std::span<const std::int64_t> indices, HostMemory memory) {
  Batch batch;
  std::vector<std::byte*> outs(source.fields().size());
  std::map<std::size_t, std::size_t> places;  // by field: the first place in `fields` that names it
  for (std::size_t i = 0; i < fields.size(); ++i) {
    assert(fields[i] < outs.size());
    const Field& field = source.fields()[fields[i]];
    batch.fields.push_back(empty_batch(field.dtype, std::ssize(indices), field.shape, memory));
    if (places.emplace(fields[i], i).second)
      outs[fields[i]] = static_cast<std::byte*>(batch.fields[i].mutable_data_ptr());
  }
  source.read_fields(indices, outs);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t first = places[fields[i]];
    if (first != i) copy(batch.fields[first], batch.fields[i]);
  }
  return batch;
}

Batch read_batch(const Source& source, std::span<const std::int64_t> indices) {
  std::vector<std::size_t> all(source.fields().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return read_batch(source, all, indices);
}

}  // namespace decent
