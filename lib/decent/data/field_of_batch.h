#pragma once
// The tensor of one field of a batch, made of its samples one by one.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "decent/data/batch.h"
#include "decent/data/source.h"

namespace decent {

/// Samples of different extents are filled up with the field's padding, up to the largest extents
/// of the batch.
class FieldOfBatch {
 public:
  /// For up to `samples` of them. `field` must outlive it.
  FieldOfBatch(const Field& field, std::int64_t samples, HostMemory memory)
      : field_(field), most_(samples), memory_(memory) {}

  /// Throws UserError where the extents differ from those of the first sample and the field has no
  /// padding.
  void add(const HostArray& array);

  /// Of the samples that were added: at least one.
  at::Tensor tensor() &&;

 private:
  using Shape = std::vector<std::int64_t>;

  void join(const Shape& shape);
  at::Tensor padded() const;

  const Field& field_;
  std::int64_t most_;
  HostMemory memory_;
  std::int64_t count_ = 0;
  Shape shape_;        // of all samples, or with padding what holds all of them
  at::Tensor tensor_;  // without padding
  std::byte* next_ = nullptr;
  Shape extents_;                 // with padding, those of one sample after another,
  std::vector<std::byte> bytes_;  // and the samples
};

}  // namespace decent
