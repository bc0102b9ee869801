#pragma once
// The tensor of one field of a batch, filled sample by sample.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "decent/data/batch.h"
#include "decent/data/source.h"

namespace decent {

/// If the samples differ in extents, all are padded to the largest extents in the batch with the
/// field's padding.
class FieldOfBatch {
 public:
  /// Takes up to `samples` samples. `field` must outlive this object.
  FieldOfBatch(const Field& field, std::int64_t samples, HostMemory memory)
      : field_(field), most_(samples), memory_(memory) {}

  /// Throws UserError if the extents differ from those of the first sample and the field has no
  /// padding.
  void add(const HostArray& array);

  /// The tensor of the samples that were added, at least one.
  at::Tensor tensor() &&;

 private:
  using Shape = std::vector<std::int64_t>;

  void join(const Shape& shape);
  at::Tensor padded() const;

  const Field& field_;
  std::int64_t most_;
  HostMemory memory_;
  std::int64_t count_ = 0;
  Shape shape_;        // of all samples; with padding, the largest extents
  at::Tensor tensor_;  // without padding
  std::byte* next_ = nullptr;
  Shape extents_;                 // with padding: the extents of each sample in turn,
  std::vector<std::byte> bytes_;  // and the samples' bytes
};

}  // namespace decent
