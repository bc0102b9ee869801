#pragma once
// Data sources. A source is a table of `size()` samples, each with the same named fields. It does
// not use torch, so that readers compile fast and can be fuzzed; batch.h makes tensors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/dtype.h"
#include "decent/core/options.h"

namespace decent {

/// An extent of a field that differs between samples: of images that are not of one size, of texts.
inline constexpr std::int64_t kAnyExtent = -1;

/// One column of a source. `shape` is that of one sample, without the sample dimension.
struct Field {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  /// What samples of a batch that are shorter than others are filled up with, at the end of each
  /// dimension. None: their extents must be the same.
  std::optional<std::int64_t> padding = std::nullopt;

  bool fixed() const { return std::find(shape.begin(), shape.end(), kAnyExtent) == shape.end(); }
  /// Of a fixed field.
  std::size_t sample_bytes() const {
    std::size_t bytes = size_of(dtype);
    for (std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    return bytes;
  }
};

/// One field of one sample, row-major.
struct HostArray {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

/// Where a sample came from, for whoever looks it up there.
struct SampleOrigin {
  std::string file = {};                           // empty: the data is one file, or none
  std::optional<std::int64_t> row = std::nullopt;  // in that file, from 0; none: it is the file
};

/// Random access to samples, as torch.utils.data.Dataset. Immutable after construction, so all
/// calls are thread-safe.
class Source {
 public:
  virtual ~Source() = default;

  virtual const std::vector<Field>& fields() const = 0;
  /// Number of samples.
  virtual std::int64_t size() const = 0;
  /// Copies field number `field` of the samples `indices`, each in [0, size()), one after another
  /// to `out`, which has indices.size() * fields()[field].sample_bytes() bytes. Only for a fixed
  /// field. Throws UserError if a file was truncated or a sample is broken.
  virtual void read(std::size_t field, std::span<const std::int64_t> indices,
                    std::byte* out) const = 0;
  /// The same for several fields: field f to outs[f], unless that is null. A source that has to
  /// look for a sample, or to take it apart, does so once for all of them. This one reads them one
  /// by one.
  virtual void read_fields(std::span<const std::int64_t> indices,
                           std::span<std::byte* const> outs) const;
  /// The fields with numbers `fields`, which may be any, of one sample with its own extents. Fills
  /// those of `sample`, an array for each field of the source, which keep their memory from call to
  /// call. This one is for fixed fields.
  virtual void read_one(std::span<const std::size_t> fields, std::int64_t index,
                        std::span<HostArray> sample) const;
  /// One of them.
  HostArray read_one(std::size_t field, std::int64_t index) const;
  /// The names of the classes that the numbers in field `y` stand for, from 0 on; none where the
  /// data names none.
  virtual std::vector<std::string> classes() const { return {}; }

  /// What the format has learned of its files, which it needs to read other files alike: values of
  /// names of its own, for DataFormat::open_as. Empty where it learns nothing.
  virtual Options learned() const { return {}; }

  /// How the files are read, where a user may want to know; a line each.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Throws UserError where the file of a sample is not there. Reads nothing of it.
  virtual void check_there(std::int64_t /*index*/) const {}

  virtual SampleOrigin origin_of(std::int64_t index) const { return {.row = index}; }

  /// Whether a sample takes long to read: an image that has to be decoded. Whoever would look at
  /// all samples then looks at some.
  virtual bool decodes() const { return false; }

  /// The number of the field `name`; nullopt if there is none.
  std::optional<std::size_t> field_index(std::string_view name) const;
};

/// A source that reads the fields of a sample together.
class SourceOfRows : public Source {
 public:
  void read(std::size_t field, std::span<const std::int64_t> indices, std::byte* out) const final;
  void read_fields(std::span<const std::int64_t> indices,
                   std::span<std::byte* const> outs) const override = 0;
};

/// "sample 3 ('a.csv', row 2)": how messages name a sample. `files` stands for the file where the
/// source has only one.
std::string sample_text(const Source& source, std::int64_t sample, const std::string& files = "");

}  // namespace decent
