#include "decent/model/onnx/write_external.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/quote.h"
#include "decent/model/onnx/walk.h"
#include "decent/model/onnx/wire_write.h"

namespace decent::onnx {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kAlignment = 64;  // of elements that are appended

bool same(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
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

std::string key_of(Input& file, ByteRange field) {
  const Message outer(file, field, "TensorProto");
  Fields around(outer);
  const Message message = outer.open(*around.next(), "StringStringEntryProto");
  for (Fields fields(message); const Field* each = fields.next();) {
    if (each->number == 1) return message.text(*each);
  }
  return {};
}

// One file of external data: what its tensors become, and where.
class DataFile {
 public:
  DataFile(Bytes original, const Changed& changed) : original_(original), changed_(changed) {}

  void add(const Tensor& tensor) {
    ranges_[{tensor.offset, tensor.bytes.size()}].push_back(&tensor);
  }

  // The first tensor of a range stays in it, with those that have its elements.
  void place() {
    for (const auto& [range, tensors] : ranges_) {
      const Bytes first = elements_of(*tensors.front());
      if (!same(first, tensors.front()->bytes)) patches_[range.first] = first;
      for (const Tensor* tensor : tensors) {
        const Bytes elements = elements_of(*tensor);
        places_[tensor] = same(elements, first) ? range.first : append(elements);
      }
    }
  }

  void edit_entries(Input& file, const std::string& location, bool renamed,
                    std::vector<Edit>& edits) const {
    for (const auto& [tensor, offset] : places_) {
      if (!appended_.empty()) {
        rewrite_entries(*tensor, location, offset, edits);
        continue;
      }
      const bool changed = !same(elements_of(*tensor), tensor->bytes);
      for (const ByteRange& field : tensor->fields) {
        const std::string key = key_of(file, field);
        if (key == "location" && renamed) {
          edits.push_back({.field = field, .begin = entry("location", location)});
        } else if (key == "checksum" && changed) {
          edits.push_back({.field = field});
        }
      }
    }
  }

  void write(AtomicFile& to) const {
    std::uint64_t written = 0;
    for (const auto& [offset, elements] : patches_) {
      to.write(text_of(original_.subspan(written, offset - written)));
      to.write(text_of(elements));
      written = offset + elements.size();
    }
    to.write(text_of(original_.subspan(written)));
    written = original_.size();
    for (const auto& [offset, elements] : appended_) {
      to.write(std::string(offset - written, '\0'));
      to.write(text_of(elements));
      written = offset + elements.size();
    }
  }

 private:
  Bytes elements_of(const Tensor& tensor) const {
    const auto found = changed_.find(&tensor);
    return found == changed_.end() ? tensor.bytes : found->second;
  }

  std::uint64_t append(Bytes elements) {
    std::uint64_t end = original_.size();
    if (!appended_.empty()) end = appended_.back().first + appended_.back().second.size();
    const std::uint64_t offset = (end + kAlignment - 1) / kAlignment * kAlignment;
    appended_.emplace_back(offset, elements);
    return offset;
  }

  // All of them, as a tensor without a length goes to the end of the file, which moves.
  static void rewrite_entries(const Tensor& tensor, const std::string& location,
                              std::uint64_t offset, std::vector<Edit>& edits) {
    for (const ByteRange& field : tensor.fields) edits.push_back({.field = field});
    edits[edits.size() - tensor.fields.size()].begin =
        entry("location", location) + entry("offset", std::to_string(offset)) +
        entry("length", std::to_string(tensor.bytes.size()));
  }

  Bytes original_;
  const Changed& changed_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<const Tensor*>> ranges_;
  std::map<std::uint64_t, Bytes> patches_;                 // by offset
  std::vector<std::pair<std::uint64_t, Bytes>> appended_;  // by offset
  std::map<const Tensor*, std::uint64_t> places_;          // offsets
};

Bytes bytes_of_file(const Model& model, const std::string& location) {
  const std::filesystem::path folder =
      model.path.has_parent_path() ? model.path.parent_path() : std::filesystem::path(".");
  for (const auto& file : model.files) {
    if (file->path() == folder / location) return file->bytes();
  }
  throw std::logic_error("external data that was not read: " + location);
}

// Files that are written must be different from each other and from those that are read.
class Destinations {
 public:
  Destinations(const Model& model, std::filesystem::path path)
      : model_(model), path_(std::move(path)) {}

  std::filesystem::path take(const std::string& location) {
    const std::filesystem::path destination = path_.parent_path() / location;
    // The second is the temporary name under which the model is written.
    const bool is_model = destination == path_ || destination == path_.string() + ".tmp";
    if (is_model || !taken_.insert(destination).second) {
      throw UserError("cannot write '" + path_.string() + "': its external data " +
                      in_quotes(location) + " would be written over another of its files; choose " +
                      "another name for the model");
    }
    for (const auto& file : model_.files) {
      std::error_code missing;
      if (!std::filesystem::equivalent(file->path(), destination, missing)) continue;
      throw UserError("cannot write '" + path_.string() + "': its external data " +
                      in_quotes(location) + " would be written over that of the model that it is " +
                      "made from; choose another folder");
    }
    return destination;
  }

 private:
  const Model& model_;
  std::filesystem::path path_;
  std::set<std::filesystem::path> taken_;
};

}  // namespace

std::string new_location(const std::string& location, const std::filesystem::path& model,
                         const std::filesystem::path& written) {
  const std::size_t folder = location.rfind('/') + 1;  // 0 where there is none
  const std::string name = location.substr(folder);
  const auto with = [&](const std::string& old_begin, const std::string& new_begin) {
    return location.substr(0, folder) + new_begin + name.substr(old_begin.size());
  };
  const std::string full = model.filename().string();
  if (name.starts_with(full)) return with(full, written.filename().string());
  const std::string stem = model.stem().string();
  const bool goes_on =
      name.size() > stem.size() && std::isalnum(static_cast<unsigned char>(name[stem.size()])) != 0;
  if (name.starts_with(stem) && !goes_on) return with(stem, written.stem().string());
  return location;
}

ExternalWriter::ExternalWriter(Input& file, const Model& model, const Changed& changed,
                               const std::filesystem::path& path, std::vector<Edit>& edits) {
  std::map<std::string, DataFile> data;
  for_each_tensor(model, [&](const Tensor& tensor) {
    if (tensor.encoding != Encoding::external) return;
    auto known = data.find(tensor.location);
    if (known == data.end()) {
      const Bytes original = bytes_of_file(model, tensor.location);
      known = data.try_emplace(tensor.location, original, changed).first;
    }
    known->second.add(tensor);
  });
  Destinations destinations(model, path);
  for (auto& [location, content] : data) {
    const std::string renamed = new_location(location, model.path, path);
    const std::filesystem::path destination = destinations.take(renamed);
    content.place();
    content.edit_entries(file, renamed, renamed != location, edits);
    if (destination.has_parent_path()) create_folders(destination.parent_path());
    files_.push_back(std::make_unique<AtomicFile>(destination));
    content.write(*files_.back());
  }
}

void ExternalWriter::commit() {
  for (const std::unique_ptr<AtomicFile>& file : files_) file->commit();
}

}  // namespace decent::onnx
