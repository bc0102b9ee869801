#include "decent/pt2/write/write.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/zip.h"
#include "decent/core/zip_edit.h"
#include "decent/pt2/archive/records.h"

namespace decent::pt2 {
namespace {

/// A tensor with its program and its name there.
struct Tensor {
  const ExportedProgram* program = nullptr;
  const std::string* name = nullptr;
  const Payload* payload = nullptr;
};

// From the place of a storage in the file to the tensors that are views of it.
using TensorsByPlace = std::map<std::uint64_t, std::vector<Tensor>>;

TensorsByPlace tensors_by_place(const Archive& archive) {
  TensorsByPlace tensors;
  for (const ExportedProgram& program : archive.programs) {
    for (const ByName<Payload>* table : {&program.weights, &program.constants}) {
      for (const auto& [name, payload] : *table) {
        tensors[payload.offset].push_back({&program, &name, &payload});
      }
    }
  }
  return tensors;
}

// The file being written: the original with replaced pieces.
class Output {
 public:
  Output(const std::filesystem::path& path, std::span<const std::byte> original)
      : file_(path), original_(original) {}

  /// Puts `value` at `place`, which must not have been written yet.
  void patch(std::uint64_t place, std::uint32_t value) { patches_[place] = value; }

  void copy_to(std::uint64_t end) {
    for (auto patch = patches_.lower_bound(written_); patch != patches_.end() && patch->first < end;
         ++patch) {
      if (end - patch->first < sizeof patch->second)
        throw UserError("the archive is damaged: a checksum lies where its directory begins");
      write(original_.subspan(written_, patch->first - written_));
      write(std::as_bytes(std::span(&patch->second, 1)));
    }
    write(original_.subspan(written_, end - written_));
  }
  /// Writes bytes in place of the same number of the original's.
  void write(std::span<const std::byte> bytes) {
    file_.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    written_ += bytes.size();
  }
  void replace(const ZipEdit& edit) {
    copy_to(edit.begin);
    file_.write(edit.bytes);
    written_ = edit.end;
  }
  void commit() {
    copy_to(original_.size());
    file_.commit();
  }

 private:
  AtomicFile file_;
  std::span<const std::byte> original_;
  std::uint64_t written_ = 0;
  std::map<std::uint64_t, std::uint32_t> patches_;  // by place
};

// Copies row-major elements to their places in the tensor's storage.
void scatter(const Payload& payload, std::span<const std::byte> elements,
             std::span<std::byte> storage) {
  const std::uint64_t size = size_of(payload.dtype);
  const std::size_t dims = payload.sizes.size();
  std::vector<std::int64_t> index(dims, 0);
  auto place = static_cast<std::uint64_t>(payload.storage_offset);
  for (std::size_t from = 0; from < elements.size(); from += size) {
    std::memcpy(storage.data() + place * size, elements.data() + from, size);
    for (std::size_t d = dims; d-- > 0;) {  // the next index, the last dimension first
      const auto stride = static_cast<std::uint64_t>(payload.strides[d]);
      place += stride;
      if (++index[d] < payload.sizes[d]) break;
      place -= stride * static_cast<std::uint64_t>(payload.sizes[d]);
      index[d] = 0;
    }
  }
}

void fill(const Tensor& tensor, const NewElements& new_elements, std::span<std::byte> storage) {
  const Payload& payload = *tensor.payload;
  const std::uint64_t element = size_of(payload.dtype);
  const std::uint64_t bytes = static_cast<std::uint64_t>(payload.count()) * element;
  if (bytes == 0) return;
  const std::uint64_t offset = static_cast<std::uint64_t>(payload.storage_offset) * element;
  if (payload.is_contiguous()) {
    new_elements(*tensor.program, *tensor.name, payload, storage.subspan(offset, bytes));
    return;
  }
  std::vector<std::byte> elements(bytes);
  if (new_elements(*tensor.program, *tensor.name, payload, elements)) {
    scatter(payload, elements, storage);
  }
}

void write_record(const Archive& archive, const ZipEntry& entry, std::uint64_t offset,
                  const std::vector<Tensor>& tensors, const NewElements& new_elements,
                  Output& output) {
  std::vector<std::byte> storage(entry.data.size());
  archive.file->copy(offset, storage);
  for (const Tensor& tensor : tensors) fill(tensor, new_elements, storage);
  const std::uint32_t checksum = zip_checksum(storage);
  for (const std::uint64_t place : checksum_places(archive.file->bytes(), entry, archive.what())) {
    output.patch(place, checksum);
  }
  output.copy_to(offset);
  output.write(storage);
}

void add_records(const Archive& archive, const Records& records,
                 const std::map<std::string, std::string>& added, Output& output) {
  std::map<std::string, std::string_view> changed;  // by their names in the zip archive
  for (const auto& [name, content] : added) {
    const ZipEntry* old = records.find(name);
    const auto bytes = std::as_bytes(std::span(content));
    if (old == nullptr || old->deflated || !std::ranges::equal(old->data, bytes))
      changed.emplace(records.folder() + name, content);
  }
  if (changed.empty()) return;
  std::vector<ZipAddition> additions;
  for (const auto& [name, content] : changed) additions.push_back({name, content});
  for (const ZipEdit& edit : edits_to_add(archive.file->bytes(), additions, archive.what()))
    output.replace(edit);
}

}  // namespace

void write_archive(const Archive& archive, const std::filesystem::path& path,
                   const Changes& changes) {
  const std::span<const std::byte> original = archive.file->bytes();
  const Records records(original, archive.what());
  Output output(path, original);
  for (const auto& [offset, tensors] : tensors_by_place(archive)) {
    const ZipEntry& entry = records.at(tensors.front().payload->record);
    write_record(archive, entry, offset, tensors, changes.elements, output);
  }
  add_records(archive, records, changes.records, output);
  output.commit();
}

}  // namespace decent::pt2
