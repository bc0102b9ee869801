#include "decent/data/table_source.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

std::string described(const TensorView& tensor) {
  return "'" + tensor.name + "' has shape " + shape_text(tensor.shape);
}

// The number of samples that all tensors agree on.
std::int64_t sample_count(std::span<const TensorView> tensors, const std::string& file) {
  constexpr const char* kRule = " (the first dimension of every tensor counts the samples)";
  if (tensors.empty()) throw UserError("'" + file + "': holds no tensors");
  for (const TensorView& tensor : tensors) {
    if (tensor.shape.empty()) throw UserError("'" + file + "': " + described(tensor) + kRule);
    if (tensor.shape[0] != tensors[0].shape[0]) {
      throw UserError("'" + file + "': " + described(tensors[0]) + ", but " + described(tensor) +
                      kRule);
    }
  }
  if (tensors[0].shape[0] == 0) {
    throw UserError("'" + file + "': holds no samples: " + described(tensors[0]));
  }
  return tensors[0].shape[0];
}

class TableSource final : public Source {
 public:
  TableSource(std::vector<TensorView> arrays, std::shared_ptr<const void> owner,
              const std::string& file)
      : owner_(std::move(owner)), size_(sample_count(arrays, file)) {
    for (TensorView& array : arrays) {
      fields_.push_back(
          {std::move(array.name), array.dtype, {array.shape.begin() + 1, array.shape.end()}});
      data_.push_back(array.data);
    }
  }

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return size_; }

  void read(std::size_t field, std::span<const std::int64_t> indices,
            std::byte* out) const override {
    assert(field < fields_.size());
    const std::size_t row = fields_[field].sample_bytes();
    if (row == 0) return;
    for (std::int64_t index : indices) {
      assert(index >= 0 && index < size_);
      std::memcpy(out, data_[field].data() + static_cast<std::size_t>(index) * row, row);
      out += row;
    }
  }

 private:
  std::shared_ptr<const void> owner_;
  std::vector<Field> fields_;
  std::vector<std::span<const std::byte>> data_;  // of each field
  std::int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<Source> make_table_source(std::vector<TensorView> arrays,
                                          std::shared_ptr<const void> owner,
                                          const std::string& file) {
  return std::make_unique<TableSource>(std::move(arrays), std::move(owner), file);
}

}  // namespace decent
