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

/// An extent of a field that differs between samples, as for texts and for images of different
/// sizes.
inline constexpr std::int64_t kAnyExtent = -1;

/// The class of pixels in a mask that belong to no class, as in the masks of Pascal VOC and
/// Cityscapes. It does not count if model.ignore_index names it.
inline constexpr std::int64_t kNoClass = 255;

/// One column of a source. `shape` is that of one sample, without the sample dimension.
struct Field {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  /// The value that pads shorter samples of a batch at the end of each dimension. None: all samples
  /// must have the same extents.
  std::optional<std::int64_t> padding = std::nullopt;
  /// For a mask, int64 [height, width]: the name of the field with the image whose pixels have
  /// these classes. Transforms that move the pixels of the image move those of the mask, too.
  std::string mask_of = {};

  bool fixed() const { return std::find(shape.begin(), shape.end(), kAnyExtent) == shape.end(); }
  /// Only for a fixed field.
  std::size_t sample_bytes() const {
    std::size_t bytes = size_of(dtype);
    for (std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    return bytes;
  }
  /// Whether samples may differ in an extent, to which a batch pads the shorter ones.
  bool padded() const { return padding.has_value() && !fixed(); }
  bool operator==(const Field&) const = default;
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

/// Where a sample came from, for a user who wants to look it up.
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
  /// The same for several fields: copies field f to outs[f], unless that is null. A source that
  /// must search for a sample, or parse it, does so once for all fields. This default reads the
  /// fields one by one.
  virtual void read_fields(std::span<const std::int64_t> indices,
                           std::span<std::byte* const> outs) const;
  /// Reads the fields with numbers `fields`, fixed or not, of one sample with its own extents.
  /// Fills these fields of `sample`, which has an array for each field of the source; the arrays
  /// keep their memory from call to call. This default is for fixed fields.
  virtual void read_one(std::span<const std::size_t> fields, std::int64_t index,
                        std::span<HostArray> sample) const;
  /// The same for one field.
  HostArray read_one(std::size_t field, std::int64_t index) const;
  /// The names of the classes that the numbers in field `y` mean, from 0 on; empty if the data has
  /// no names for them.
  virtual std::vector<std::string> classes() const { return {}; }

  /// What the format has learned from its files and needs to read other files in the same way, for
  /// DataFormat::open_as. The format chooses the names of these values. Empty if it learns nothing.
  virtual Options learned() const { return {}; }

  /// Notes for the user on how the files are read, a line each.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Throws UserError if the file of a sample does not exist. Does not read it.
  virtual void check_there(std::int64_t /*index*/) const {}

  /// The tokens of a sample: its largest extent in the fields that a batch pads. This default reads
  /// the sample. 0 if a batch pads no field.
  virtual std::int64_t length_of(std::int64_t index) const;

  virtual SampleOrigin origin_of(std::int64_t index) const { return {.row = index}; }

  /// Whether reading a sample takes long, because an image has to be decoded. Checks that would
  /// look at all samples then look at some.
  virtual bool decodes() const { return false; }

  /// The number of the field `name`; nullopt if there is none.
  std::optional<std::size_t> field_index(std::string_view name) const;
};

/// A source that reads the fields of a sample together.
class SourceOfRows : public Source {
 public:
  void read(std::size_t field, std::span<const std::int64_t> indices, std::byte* out) const final;
  /// Sources implement it; this part of it reads the fields one by one.
  void read_fields(std::span<const std::int64_t> indices,
                   std::span<std::byte* const> outs) const override = 0;
};

/// The name of a sample in messages: "sample 3 ('a.csv', row 2)". `files` is the file's name if the
/// source has only one.
std::string sample_text(const Source& source, std::int64_t sample, const std::string& files = "");

}  // namespace decent
