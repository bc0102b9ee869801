#include "decent/onnx/write/write_external.h"

#include <algorithm>
#include <set>

#include "decent/core/error.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/format/walk.h"
#include "decent/onnx/format/wire.h"

namespace decent::onnx {
namespace {

using Bytes = std::span<const std::byte>;

// The alignment of elements. Large tensors begin at a page, so that they can be mapped by
// themselves.
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kLargeBytes = 16 * kPageBytes;

bool same(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::uint64_t aligned(std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t alignment = size >= kLargeBytes ? kPageBytes : kAlignment;
  return (offset + alignment - 1) / alignment * alignment;
}

// A field of TensorProto.
std::string entry(std::string_view key, std::string_view value) {
  std::string content;
  append_bytes(content, 1, key);
  append_bytes(content, 2, value);
  std::string field;
  append_bytes(field, 13, content);
  return field;
}

// Replaces all entries of the tensor, because an old checksum would be wrong, too.
void rewrite_entries(const Tensor& tensor, const std::string& location, std::uint64_t offset,
                     std::vector<Edit>& edits) {
  const std::size_t first = edits.size();
  for (const ByteRange& field : tensor.fields) edits.push_back({.field = field});
  edits.at(first).begin = entry("location", location) + entry("offset", std::to_string(offset)) +
                          entry("length", std::to_string(tensor.bytes.size()));
}

// "m.onnx.data", "m.onnx.2.data", "m.onnx.3.data", ..
std::string data_name(const std::string& model, std::size_t number) {
  return model + (number == 1 ? "" : "." + std::to_string(number)) + ".data";
}

bool is_data_name(const std::string& name, const std::string& model) {
  if (name == data_name(model, 1)) return true;
  const std::string end = ".data";
  if (name.size() <= model.size() + 1 + end.size() || !name.starts_with(model + ".")) return false;
  const std::string middle =
      name.substr(model.size() + 1, name.size() - model.size() - 1 - end.size());
  const bool is_number = middle.find_first_not_of("0123456789") == std::string::npos;
  return is_number && middle.front() != '0' && name.ends_with(end);
}

std::filesystem::path new_data_path(const std::filesystem::path& model) {
  for (std::size_t number = 1;; ++number) {
    std::filesystem::path path = folder_of(model) / data_name(model.filename().string(), number);
    std::error_code failed;
    const std::filesystem::file_status status = std::filesystem::symlink_status(path, failed);
    if (status.type() == std::filesystem::file_type::not_found) return path;
    if (failed) throw WriteError("cannot write '" + path.string() + "': " + failed.message());
  }
}

bool names(const std::filesystem::path& model, const std::string& file) {
  try {
    return text_of(MappedFile(model).bytes()).find(file) != std::string_view::npos;
  } catch (const UserError&) {
    return true;  // unreadable, so it may name the file
  }
}

// Whether another model file of the folder, such as a copy of `model`, names the file.
bool is_named_by_others(const std::string& file, const std::filesystem::path& model) {
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder_of(model))) {
      const std::filesystem::path& other = entry.path();
      if (other.extension() != ".onnx" || other.filename() == model.filename()) continue;
      if (entry.is_regular_file() && names(other, file)) return true;
    }
  } catch (const std::filesystem::filesystem_error&) {
    return true;  // the folder cannot be listed
  }
  return false;
}

bool is_read(const Model& model, const std::filesystem::path& path) {
  return std::any_of(model.files.begin(), model.files.end(), [&](const auto& file) {
    std::error_code missing;
    return std::filesystem::equivalent(file->path(), path, missing);
  });
}

}  // namespace

std::uint64_t ExternalLayout::place(const Tensor& tensor, Bytes elements) {
  std::vector<std::size_t>& shared = placed_[{tensor.bytes.data(), tensor.bytes.size()}];
  for (const std::size_t piece : shared) {
    if (same(pieces_[piece].elements, elements)) return pieces_[piece].offset;
  }
  const std::uint64_t end =
      pieces_.empty() ? 0 : pieces_.back().offset + pieces_.back().elements.size();
  shared.push_back(pieces_.size());
  pieces_.push_back({aligned(end, elements.size()), elements});
  return pieces_.back().offset;
}

void ExternalLayout::write(AtomicFile& to) const {
  std::uint64_t written = 0;
  for (const auto& [offset, elements] : pieces_) {
    to.write(std::string(offset - written, '\0'));
    to.write(text_of(elements));
    written = offset + elements.size();
  }
}

ExternalWriter::ExternalWriter(const Model& model, const Changed& changed,
                               const std::filesystem::path& path, std::vector<Edit>& edits) {
  ExternalLayout layout;
  for_each_tensor(model, [&](const Tensor& tensor) {
    if (tensor.encoding != Encoding::external) return;
    if (path_.empty()) path_ = new_data_path(path);
    const auto found = changed.find(&tensor);
    const Bytes elements = found == changed.end() ? tensor.bytes : found->second;
    rewrite_entries(tensor, path_.filename().string(), layout.place(tensor, elements), edits);
  });
  if (path_.empty()) return;
  file_.emplace(path_);
  layout.write(*file_);
}

ExternalWriter::~ExternalWriter() {
  std::error_code ignored;
  if (published_) std::filesystem::remove(path_, ignored);
}

void ExternalWriter::sync() {
  if (file_) file_->sync();
}

void ExternalWriter::publish() {
  if (!file_) return;
  file_->rename_as_new();
  published_ = true;
  sync_folder(folder_of(path_));
}

std::vector<std::filesystem::path> superseded_data(const std::filesystem::path& path,
                                                   const Model& replacement) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, missing))) return {};
  std::set<std::string> locations;
  try {
    for_each_tensor(read_model(path), [&](const Tensor& tensor) {
      if (tensor.encoding == Encoding::external) locations.insert(tensor.location);
    });
  } catch (const UserError&) {
    return {};  // no whole model, so nothing tells which files are its own
  }
  std::vector<std::filesystem::path> superseded;
  for (const std::string& location : locations) {
    const std::filesystem::path file = folder_of(path) / location;
    if (!is_data_name(location, path.filename().string())) continue;
    if (!is_read(replacement, file) && !is_named_by_others(location, path))
      superseded.push_back(file);
  }
  return superseded;
}

}  // namespace decent::onnx
