// Predictions as numpy.savez writes arrays.

#include <algorithm>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/report/predictions/arrays.h"
#include "decent/report/predictions/formats.h"
#include "decent/report/predictions/utf8.h"
#include "decent/report/predictions/zip_writer.h"

namespace decent {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// numpy.lib.format, version 1.0: the elements begin at a multiple of 64 bytes.
std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : shape) header += std::to_string(extent) + ", ";
  header += "), }";
  constexpr std::size_t kBytesBeforeHeader = 10;  // magic number, version, length
  while ((kBytesBeforeHeader + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  const std::string before = {'\x93',
                              'N',
                              'U',
                              'M',
                              'P',
                              'Y',
                              1,
                              0,
                              static_cast<char>(length),
                              static_cast<char>(length >> 8)};
  return before + header;
}

void add_array(ZipWriter& zip, const std::string& name, const std::string& type,
               const std::vector<std::int64_t>& shape, std::span<const std::byte> data) {
  const std::string header = npy_header(type, shape);
  const std::span<const std::byte> pieces[] = {bytes_of(header), data};
  zip.add(name + ".npy", pieces);
}

// Writes texts with four bytes per character, padded to the longest.
void add_texts(ZipWriter& zip, const std::string& name, const std::vector<std::string>& texts) {
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, code_points(text).size());
  std::u32string all;
  for (const std::string& text : texts) {
    std::u32string characters = code_points(text);
    characters.resize(longest);
    all += characters;
  }
  add_array(zip, name, "<U" + std::to_string(longest), {std::ssize(texts)},
            std::as_bytes(std::span(all)));
}

class NpzPredictions final : public PredictionFile {
 public:
  NpzPredictions(const std::filesystem::path& path, std::vector<std::string> names)
      : file_(path), arrays_(path), names_(std::move(names)) {}

  void add(const PredictionBatch& batch) override { arrays_.add(batch); }

  void finish() override {
    ZipWriter zip(file_);
    for (const TensorView& tensor : arrays_.tensors()) {
      add_array(zip, tensor.name, tensor.dtype == DType::int64 ? "<i8" : "<f4", tensor.shape,
                tensor.data);
    }
    if (!arrays_.files().empty()) add_texts(zip, "file", arrays_.files());
    if (arrays_.has_classes() && !names_.empty()) add_texts(zip, "class_names", names_);
    zip.finish();
    file_.commit();
  }

 private:
  AtomicFile file_;
  PredictionArrays arrays_;
  std::vector<std::string> names_;
};

std::unique_ptr<PredictionFile> open_npz(const std::filesystem::path& path,
                                         const std::vector<std::string>& names) {
  return std::make_unique<NpzPredictions>(path, names);
}

}  // namespace

PredictionFormat npz_predictions() { return {.extension = ".npz", .open = open_npz}; }

}  // namespace decent
