#include "decent/data/field_of_batch.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"

namespace decent {
namespace {

// The bytes of one element.
std::vector<std::byte> element_of(DType dtype, std::int64_t value) {
  const at::Tensor one = at::full({1}, value, scalar_type(dtype));
  const auto* bytes = static_cast<const std::byte*>(one.const_data_ptr());
  return {bytes, bytes + one.nbytes()};
}

using Extents = std::span<const std::int64_t>;

// Copies samples into larger arrays, one after another.
class Padder {
 public:
  Padder(std::vector<std::byte> element, Extents whole, std::byte* out)
      : element_(std::move(element)), whole_(whole), out_(out) {}

  /// Returns the first byte after the sample.
  const std::byte* add(const std::byte* sample, Extents extents) {
    add(extents, whole_, sample);
    return sample;
  }

 private:
  void add(Extents extents, Extents whole, const std::byte*& in) {
    if (extents.empty()) return copy(1, in);
    if (extents.size() == 1) {
      copy(extents[0], in);
    } else {
      for (std::int64_t i = 0; i < extents[0]; ++i) add(extents.subspan(1), whole.subspan(1), in);
    }
    std::int64_t missing = whole[0] - extents[0];
    for (const std::int64_t extent : whole.subspan(1)) missing *= extent;
    for (; missing > 0; --missing) out_ = std::copy(element_.begin(), element_.end(), out_);
  }

  void copy(std::int64_t elements, const std::byte*& in) {
    const std::size_t bytes = static_cast<std::size_t>(elements) * element_.size();
    out_ = std::copy_n(in, bytes, out_);
    in += bytes;
  }

  std::vector<std::byte> element_;
  Extents whole_;
  std::byte* out_;
};

}  // namespace

void FieldOfBatch::add(const HostArray& array) {
  if (count_++ == 0) {
    shape_ = array.shape;
    if (!field_.padding) {
      tensor_ = empty_batch(array.dtype, most_, shape_, memory_);
      next_ = static_cast<std::byte*>(tensor_.mutable_data_ptr());
    }
  }
  if (array.shape != shape_) join(array.shape);
  if (field_.padding) {
    extents_.insert(extents_.end(), array.shape.begin(), array.shape.end());
    bytes_.insert(bytes_.end(), array.bytes.begin(), array.bytes.end());
  } else {
    next_ = std::copy(array.bytes.begin(), array.bytes.end(), next_);
  }
}

void FieldOfBatch::join(const Shape& shape) {
  if (!field_.padding || shape.size() != shape_.size()) {
    throw UserError("the samples of a batch differ in field '" + field_.name +
                    "': " + shape_text(shape_) + " and " + shape_text(shape) +
                    ". Transforms that give all of them one size are resize: [height, width], and "
                    "resize with center_crop");
  }
  for (std::size_t i = 0; i < shape.size(); ++i) shape_[i] = std::max(shape_[i], shape[i]);
}

at::Tensor FieldOfBatch::padded() const {
  at::Tensor tensor = empty_batch(field_.dtype, count_, shape_, memory_);
  Padder padder(element_of(field_.dtype, *field_.padding), shape_,
                static_cast<std::byte*>(tensor.mutable_data_ptr()));
  const std::byte* sample = bytes_.data();
  Extents left = extents_;
  for (std::int64_t i = 0; i < count_; ++i, left = left.subspan(shape_.size()))
    sample = padder.add(sample, left.first(shape_.size()));
  return tensor;
}

at::Tensor FieldOfBatch::tensor() && {
  return field_.padding ? padded() : tensor_.narrow(0, 0, count_);
}

}  // namespace decent
