#pragma once
// Batches of two fields, for tests of transforms that mix samples.

#include <array>
#include <cmath>
#include <cstring>

#include "decent/data/samples.h"

namespace decent::testing {

inline constexpr std::array<std::size_t, 2> kXAndY = {0, 1};
inline constexpr std::int64_t kClasses = 5;

/// Sample i: x of that shape, values of a wave; y = i mod 5, of which the source has names.
class Waves final : public Source {
 public:
  explicit Waves(std::int64_t size, DType x = DType::float32, DType y = DType::int64,
                 bool names = true, std::vector<std::int64_t> shape = {2, 3})
      : size_(size),
        names_(names),
        fields_({{.name = "x", .dtype = x, .shape = std::move(shape)},
                 {.name = "y", .dtype = y, .shape = {}}}) {}

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return size_; }
  std::vector<std::string> classes() const override {
    return names_ ? std::vector<std::string>{"a", "b", "c", "d", "e"} : std::vector<std::string>{};
  }
  void read(std::size_t field, std::span<const std::int64_t> indices,
            std::byte* out) const override {
    std::vector<float> x(fields_[0].sample_bytes() / size_of(fields_[0].dtype));
    for (const std::int64_t index : indices) {
      const auto first = static_cast<float>(index * std::ssize(x));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(first + static_cast<float>(i));
      const std::int64_t y = index % kClasses;
      const float number = 10 * x[0];
      const void* value = field == 0 ? static_cast<const void*>(x.data()) : &y;
      if (field == 1 && fields_[1].dtype == DType::float32) value = &number;
      std::memcpy(out, value, fields_[field].sample_bytes());
      out += fields_[field].sample_bytes();
    }
  }

 private:
  std::int64_t size_;
  bool names_;
  std::vector<Field> fields_;
};

/// Adds the transform of batches of that name.
inline void add_batch_transform(Transforms& transforms, const std::string& name,
                                const Options& given = {}) {
  const Transform row = transform_row(name);
  transforms.of_batches.push_back(row.make_for_batches(with_defaults(row.keys, given)));
}

inline Batch batch_of(const Samples& samples, const std::vector<std::int64_t>& indices,
                      std::int64_t epoch = 0) {
  return samples.read(kXAndY, indices, epoch, HostMemory::pageable);
}

/// The share that a sample has of itself, seen in the probabilities of two samples of the classes 0
/// and 1.
inline double share_of(const Batch& batch) { return batch.fields[1][0][0].item<double>(); }

}  // namespace decent::testing
