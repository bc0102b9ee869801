#pragma once
// The source that shows which samples were read.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "decent/data/source.h"

namespace decent::testing {

/// Sample i is the number i.
class NumberedSource final : public Source {
 public:
  explicit NumberedSource(std::int64_t size) : size_(size) {}
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return size_; }
  void read(std::size_t, std::span<const std::int64_t> indices, std::byte* out) const override {
    std::copy(indices.begin(), indices.end(), reinterpret_cast<std::int64_t*>(out));
  }

 private:
  std::int64_t size_;
  std::vector<Field> fields_ = {{.name = "x", .dtype = DType::int64, .shape = {}}};
};

}  // namespace decent::testing
