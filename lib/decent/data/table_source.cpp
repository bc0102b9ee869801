#include "decent/data/table_source.h"

#include <cassert>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

std::string described(const Array& array) {
  return "'" + array.name + "' has shape " + shape_text(array.shape);
}

// The number of samples that all arrays agree on.
std::int64_t sample_count(std::span<const Array> arrays, const std::string& file) {
  constexpr const char* kRule = " (the first dimension of every tensor counts the samples)";
  if (arrays.empty()) throw UserError("'" + file + "': holds no tensors");
  for (const Array& array : arrays) {
    if (array.shape.empty()) throw UserError("'" + file + "': " + described(array) + kRule);
    if (array.shape[0] != arrays[0].shape[0]) {
      throw UserError("'" + file + "': " + described(arrays[0]) + ", but " + described(array) +
                      kRule);
    }
  }
  if (arrays[0].shape[0] == 0) {
    throw UserError("'" + file + "': holds no samples: " + described(arrays[0]));
  }
  return arrays[0].shape[0];
}

class TableSource final : public Source {
 public:
  TableSource(std::vector<Array> arrays, const std::string& file)
      : size_(sample_count(arrays, file)) {
    for (Array& array : arrays) {
      fields_.push_back(
          {std::move(array.name), array.dtype, {array.shape.begin() + 1, array.shape.end()}});
      read_.push_back(std::move(array.read));
    }
  }

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return size_; }

  // Samples that follow one another are read at once.
  void read(std::size_t field, std::span<const std::int64_t> indices,
            std::byte* out) const override {
    assert(field < fields_.size());
    const std::size_t row = fields_[field].sample_bytes();
    if (row == 0) return;
    for (std::size_t i = 0; i < indices.size();) {
      assert(indices[i] >= 0 && indices[i] < size_);
      std::size_t end = i + 1;
      while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
      const std::size_t bytes = (end - i) * row;
      read_[field](static_cast<std::size_t>(indices[i]) * row, {out, bytes});
      out += bytes;
      i = end;
    }
  }

 private:
  std::vector<Field> fields_;
  std::vector<decltype(Array::read)> read_;  // of each field
  std::int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<Source> make_table_source(std::vector<Array> arrays, const std::string& file) {
  return std::make_unique<TableSource>(std::move(arrays), file);
}

}  // namespace decent
