#include "decent/data/batch.h"

#include <ATen/ops/empty.h>

#include <cassert>
#include <numeric>

#include "decent/core/torch_dtype.h"

namespace decent {
namespace {

at::Tensor read_field(const Source& source, std::size_t number,
                      std::span<const std::int64_t> indices, HostMemory memory) {
  assert(number < source.fields().size());
  const Field& field = source.fields()[number];
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(indices.size())};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  at::Tensor tensor = at::empty(
      shape,
      at::TensorOptions(scalar_type(field.dtype)).pinned_memory(memory == HostMemory::pinned));
  source.read(number, indices, static_cast<std::byte*>(tensor.mutable_data_ptr()));
  return tensor;
}

}  // namespace

Batch read_batch(const Source& source, std::span<const std::size_t> fields,
                 std::span<const std::int64_t> indices, HostMemory memory) {
  Batch batch;
  batch.fields.reserve(fields.size());
  for (std::size_t field : fields) {
    batch.fields.push_back(read_field(source, field, indices, memory));
  }
  return batch;
}

Batch read_batch(const Source& source, std::span<const std::int64_t> indices) {
  std::vector<std::size_t> all(source.fields().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return read_batch(source, all, indices);
}

}  // namespace decent
