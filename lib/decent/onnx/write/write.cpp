#include "decent/onnx/write/write.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/splice.h"
#include "decent/onnx/format/typed_data.h"
#include "decent/onnx/format/wire.h"
#include "decent/onnx/write/inference_form.h"
#include "decent/onnx/write/write_external.h"

namespace decent::onnx {
namespace {

constexpr std::uint32_t kMetadataField = 14;  // metadata_props of ModelProto

// Elements that equal the file's are no change.
Changed changed_elements(const std::vector<NewElements>& elements) {
  Changed changed;
  for (const NewElements& each : elements) {
    const std::span<const std::byte> old = each.tensor->elements();
    assert(each.elements.size() == old.size() && "new elements are of the tensor's type and dims");
    const bool same =
        std::equal(old.begin(), old.end(), each.elements.begin(), each.elements.end());
    if (!same) changed.emplace(each.tensor, each.elements);
  }
  return changed;
}

void edit_elements(Input& file, const Tensor& tensor, std::span<const std::byte> elements,
                   std::vector<Edit>& edits) {
  if (tensor.encoding == Encoding::raw) {
    const ByteRange field = tensor.fields.front();
    const std::span<const std::byte> header =
        file.bytes.subspan(field.begin, field.size() - elements.size());
    edits.push_back({.field = field, .begin = std::string(text_of(header)), .rest = elements});
  } else if (tensor.encoding == Encoding::typed) {
    std::vector<std::string> fields = encode_typed(file, tensor, elements);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      edits.push_back({.field = tensor.fields[i], .begin = std::move(fields[i])});
    }
  }
}

// A field of GraphProto, up to its elements, which come last.
std::string initializer_field(const Tensor& tensor) {
  std::string content;
  for (const std::int64_t dim : tensor.dims) {
    append_number(content, 1, static_cast<std::uint64_t>(dim));
  }
  append_number(content, 2, static_cast<std::uint64_t>(tensor.type));
  append_bytes(content, 8, tensor.name);
  append_tag(content, 9, WireType::bytes);
  append_varint(content, tensor.elements().size());
  std::string field;
  append_tag(field, 5, WireType::bytes);
  append_varint(field, content.size() + tensor.elements().size());
  return field + content;
}

// An input of the graph with the same name, which every initializer needs before IR version 4.
std::string input_field(const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t dim : tensor.dims) {
    std::string dimension;
    append_number(dimension, 1, static_cast<std::uint64_t>(dim));
    append_bytes(shape, 1, dimension);
  }
  std::string type;
  append_number(type, 1, static_cast<std::uint64_t>(tensor.type));
  append_bytes(type, 2, shape);
  std::string tensor_type;
  append_bytes(tensor_type, 1, type);
  std::string info;
  append_bytes(info, 1, tensor.name);
  append_bytes(info, 2, tensor_type);
  std::string field;
  append_bytes(field, 11, info);
  return field;
}

Edit own_initializer(const Model& model, const OwnInitializer& own) {
  assert(own.node->outputs.size() == 1 && own.node->outputs.front() == own.tensor.name);
  const std::string input = model.ir_version < 4 ? input_field(own.tensor) : "";
  return {.field = own.node->field,
          .begin = input + initializer_field(own.tensor),
          .rest = own.tensor.elements()};
}

std::string metadata_field(const std::string& key, const std::string& value) {
  std::string entry;
  append_bytes(entry, 1, key);
  append_bytes(entry, 2, value);
  std::string field;
  append_bytes(field, kMetadataField, entry);
  return field;
}

// The fields of new entries, for the end of the file. Adds edits that remove the entries that they
// replace.
std::string change_metadata(Input& file, const Model& model, const Changes& changes,
                            std::vector<Edit>& edits) {
  std::map<std::string, std::string> changed;
  for (const auto& [key, value] : changes.metadata) {
    const auto now = model.metadata.find(key);
    if (now == model.metadata.end() || now->second != value) changed.emplace(key, value);
  }
  const Message message(file, {0, file.bytes.size()}, "ModelProto");
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number != kMetadataField) continue;
    std::map<std::string, std::string> entry;
    parse_entry(message.open(*field, "StringStringEntryProto"), entry);
    if (changed.contains(entry.begin()->first)) edits.push_back({.field = field->range});
  }
  std::string added;
  for (const auto& [key, value] : changed) added += metadata_field(key, value);
  return added;
}

void refuse_overwriting(const Model& model, const std::filesystem::path& path) {
  for (const auto& file : model.files) {
    std::error_code missing;
    if (!std::filesystem::equivalent(file->path(), path, missing)) continue;
    throw UserError("'" + path.string() +
                    "' would be written over the model that it is made from; "
                    "choose another name or folder");
  }
}

void write_spliced(AtomicFile& to, const Spliced& spliced) {
  for (const std::span<const std::byte> piece : spliced.pieces) to.write(text_of(piece));
}

// The new model replaces the old one atomically, by the rename of the model file. Everything to
// which it refers is durable before that.
void replace(const std::filesystem::path& path, AtomicFile& written, ExternalWriter& external) {
  external.sync();
  written.sync();
  external.publish();
  written.rename();
  external.keep();
  sync_folder(folder_of(path));
}

void remove_all(const std::vector<std::filesystem::path>& superseded,
                const std::filesystem::path& path) {
  for (const std::filesystem::path& file : superseded) {
    std::error_code failed;
    std::filesystem::remove(file, failed);
    if (!failed) continue;
    throw WriteError(
        "'" + path.string() + "' is written, but '" + file.string() +
        "', the data of the model that it replaces, cannot be removed: " + failed.message());
  }
}

}  // namespace

void write_model(const Model& model, const Changes& changes, const std::filesystem::path& path) {
  refuse_overwriting(model, path);
  Input file(model.files.front()->bytes(), model.path);
  const Changed changed = changed_elements(changes.elements);
  std::vector<Edit> edits;
  if (!changes.for_training) edits = inference_form(file, model, changes.masks);
  for (const auto& [tensor, elements] : changed) edit_elements(file, *tensor, elements, edits);
  for (const OwnInitializer& own : changes.own) edits.push_back(own_initializer(model, own));
  const std::vector<std::filesystem::path> superseded = superseded_data(path, model);
  const std::string added = change_metadata(file, model, changes, edits);
  ExternalWriter external(model, changed, path, edits);
  sort_edits(edits);
  Spliced spliced = splice(file, edits);
  spliced.append(std::as_bytes(std::span(added)));
  if (spliced.size > kMaxFileBytes) {
    throw WriteError("cannot write '" + path.string() + "': it would have " +
                     std::to_string(spliced.size) + " bytes, and an ONNX file has at most 2 GiB");
  }
  AtomicFile written(path);
  write_spliced(written, spliced);
  replace(path, written, external);
  remove_all(superseded, path);
}

}  // namespace decent::onnx
