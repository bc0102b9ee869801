// Images and their labels in two files of MNIST's format.

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"
#include "decent/data/built_in.h"
#include "decent/data/formats/idx.h"
#include "decent/data/table_source.h"

namespace decent {
namespace {

// An array, and the file that may contain its data.
struct IdxFile {
  explicit IdxFile(const std::filesystem::path& path)
      : mapped(path), idx(read_idx(mapped.bytes(), path.string())) {}

  std::string name() const { return "'" + mapped.path().string() + "'"; }

  /// Copies bytes of elements. Throws UserError if the file was truncated.
  void copy(std::size_t offset, std::span<std::byte> out) const {
    if (idx.storage.empty() && !out.empty()) {
      mapped.copy(static_cast<std::size_t>(idx.data.data() - mapped.bytes().data()) + offset, out);
    } else {
      std::copy_n(idx.data.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    }
  }

  MappedFile mapped;
  Idx idx;
};

using File = std::shared_ptr<const IdxFile>;

// The 256 values that a pixel has.
std::array<float, 256> make_levels() {
  std::array<float, 256> levels{};
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<float>(i) / 255.0F;
  return levels;
}

// Pixels as float32, from byte `offset` of the float32 array on.
void read_pixels(const IdxFile& file, std::size_t offset, std::span<std::byte> out) {
  static const std::array<float, 256> levels = make_levels();
  std::array<std::byte, 4096> pixels;
  std::array<float, pixels.size()> values;
  offset /= sizeof(float);
  while (!out.empty()) {
    const std::size_t count = std::min(out.size() / sizeof(float), pixels.size());
    file.copy(offset, std::span(pixels).first(count));
    for (std::size_t i = 0; i < count; ++i)
      values[i] = levels[std::to_integer<std::size_t>(pixels[i])];
    std::memcpy(out.data(), values.data(), count * sizeof(float));
    out = out.subspan(count * sizeof(float));
    offset += count;
  }
}

[[noreturn]] void fail_shape(const File& file, const std::string& what) {
  throw UserError(file->name() + ": " + what + ", it has shape " + shape_text(file->idx.shape));
}

Array images_of(const File& file) {
  std::vector<std::int64_t> shape = file->idx.shape;
  if (file->idx.type != IdxType::uint8) fail_shape(file, "expected images of bytes (type 08)");
  if (shape.size() == 3) shape.insert(shape.begin() + 1, 1);
  if (shape.size() != 4) {
    fail_shape(file,
               "expected images, [samples, height, width] or [samples, channels, height, width]");
  }
  return {.name = "x",
          .dtype = DType::float32,
          .shape = std::move(shape),
          .read = [file](std::size_t offset, std::span<std::byte> out) {
            read_pixels(*file, offset, out);
          }};
}

// Reads all labels at once, because they are small.
Array labels_of(const File& file) {
  if (file->idx.shape.size() != 1) fail_shape(file, "expected labels, [samples]");
  std::vector<std::int64_t> labels;
  labels.reserve(static_cast<std::size_t>(file->idx.shape[0]));
  for (std::size_t i = 0; i < labels.capacity(); ++i) labels.push_back(file->idx.element(i));
  return {.name = "y",
          .dtype = DType::int64,
          .shape = file->idx.shape,
          .read = [labels = std::move(labels)](std::size_t offset, std::span<std::byte> out) {
            std::memcpy(out.data(), std::as_bytes(std::span(labels)).data() + offset, out.size());
          }};
}

std::unique_ptr<Source> open_idx(const Options& options) {
  const auto images = std::make_shared<const IdxFile>(options.get<std::filesystem::path>("images"));
  std::vector<Array> arrays;
  arrays.push_back(images_of(images));
  const auto labels_path = options.get_if<std::filesystem::path>("labels");
  if (!labels_path) return make_table_source(std::move(arrays), images->mapped.path().string());
  const auto labels = std::make_shared<const IdxFile>(*labels_path);
  arrays.push_back(labels_of(labels));
  const std::int64_t samples = arrays[0].shape[0];
  if (samples != arrays[1].shape[0]) {
    throw UserError(images->name() + " has " + counted(samples, "image") + ", " + labels->name() +
                    " has " + counted(arrays[1].shape[0], "label") +
                    "; expected one label for each image");
  }
  return make_table_source(std::move(arrays), images->mapped.path().string());
}

}  // namespace

DataFormat idx_format() {
  return {
      .name = "idx",
      .keys = {{.name = "images",
                .type = OptionType::path,
                .meaning = "File of images, plain or compressed by gzip; x is each byte / 255."},
               {.name = "labels",
                .type = OptionType::path,
                .meaning = "File of their labels, plain or compressed by gzip; y is the label. "
                           "null: there is no y.",
                .fallback = kNull}},
      .open = open_idx};
}

}  // namespace decent
