#include "decent/core/torch_file.h"

#include <array>
#include <cstdint>

#include "decent/core/byte_reader.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using pickle::Pickle;

constexpr std::array kStorageTypes = std::to_array<StorageType>({
    {"BoolStorage", 1, DType::boolean},
    {"ByteStorage", 1, DType::uint8},
    {"CharStorage", 1, DType::int8},
    {"ShortStorage", 2, DType::int16},
    {"IntStorage", 4, DType::int32},
    {"LongStorage", 8, DType::int64},
    {"HalfStorage", 2, DType::float16},
    {"BFloat16Storage", 2, DType::bfloat16},
    {"FloatStorage", 4, DType::float32},
    {"DoubleStorage", 8, DType::float64},
    {"ComplexFloatStorage", 8, {}},
    {"ComplexDoubleStorage", 16, {}},
    {"QInt8Storage", 1, {}},
    {"QUInt8Storage", 1, {}},
    {"QInt32Storage", 4, {}},
    {"QUInt4x2Storage", 1, {}},
    {"QUInt2x4Storage", 1, {}},
    {"UntypedStorage", 1, {}},
});

// ---- zip archives: torch.save since 1.6, torch.jit.save ----

constexpr std::string_view kZipMagic = "PK\x03\x04";
constexpr std::string_view kPickleName = "data.pkl";
constexpr std::string_view kStorageFolder = "data/";
constexpr std::string_view kCodeFolder = "code/";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> in_place(const ZipEntry& entry, const std::string& what) {
  if (!entry.deflated) return entry.data;
  throw UserError(what + ": " + in_quotes(entry.name) +
                  " is compressed, as torch.save never writes it.\nFrom Python, write the file "
                  "anew: torch.save(torch.load(..), ..)");
}

// All entries of an archive lie in one folder, which is named as the file was when it was written.
TorchFile read_archive(std::span<const std::byte> bytes, const std::string& what) {
  TorchFile file{.what = what, .pickle = {}, .storages = {}, .code = {}};
  const std::vector<ZipEntry> entries = read_zip(bytes, what);
  const std::string_view first = entries.empty() ? "" : entries.front().name;
  const std::string_view folder = first.substr(0, first.find('/') + 1);
  const ZipEntry* pickle = nullptr;
  for (const ZipEntry& entry : entries) {
    if (!entry.name.starts_with(folder)) continue;
    const std::string_view name = entry.name.substr(folder.size());
    if (name == kPickleName) {
      pickle = &entry;
    } else if (name.starts_with(kStorageFolder)) {
      file.storages[std::string(name.substr(kStorageFolder.size()))] = in_place(entry, what);
    } else if (name.starts_with(kCodeFolder)) {
      file.code[std::string(name.substr(kCodeFolder.size()))] = entry;
    } else if (name == "byteorder" && text_of(in_place(entry, what)) != "little") {
      throw UserError(what +
                      " was written on a big-endian machine, and cannot be read on this one");
    }
  }
  if (pickle == nullptr) {
    throw UserError(what + ": a zip archive, but not one of torch.save or torch.jit.save");
  }
  file.pickle = pickle::parse(in_place(*pickle, what), what);
  return file;
}

// ---- before PyTorch 1.6: five pickles, then the storages ----

// 0x1950a86a20f9469cfc6c.
constexpr std::string_view kOldMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t kOldProtocol = 1001;

[[noreturn]] void refuse_old(const std::string& what, const std::string& why) {
  throw UserError(what + ": " + why +
                  ".\nFrom Python, write the file anew: torch.save(torch.load(..), ..)");
}

Pickle next_pickle(ByteReader& reader, std::span<const std::byte> bytes, const std::string& what) {
  Pickle pickle = pickle::parse(bytes.subspan(reader.position()), what);
  reader.piece(pickle.size);
  return pickle;
}

void check_old_system(const Pickle& pickle, const std::string& what) {
  const auto* info = pickle.get<pickle::Dict>(pickle.root);
  if (info == nullptr) refuse_old(what, "damaged: its header is no dictionary");
  for (const auto& [key, value] : info->entries) {
    const auto* name = pickle.get<pickle::Text>(key);
    const bool* is_little = pickle.get<bool>(value);
    if (name == nullptr || name->text != "little_endian") continue;
    if (is_little != nullptr && *is_little) return;
    throw UserError(what + " was written on a big-endian machine, and cannot be read on this one");
  }
  refuse_old(what, "damaged: its header does not say the order of bytes");
}

// Only the references to a storage tell how large its elements are.
std::map<std::string_view, std::size_t> element_sizes(const Pickle& pickle) {
  std::map<std::string_view, std::size_t> sizes;
  for (const pickle::Value& value : pickle.values) {
    const auto* reference = std::get_if<pickle::Persistent>(&value);
    const auto* id = reference ? pickle.get<pickle::Tuple>(reference->id) : nullptr;
    if (id == nullptr || id->items.size() < 3) continue;
    const auto* global = pickle.get<pickle::Global>(id->items[1]);
    const auto* key = pickle.get<pickle::Text>(id->items[2]);
    const StorageType* type = global ? find_storage_type(*global) : nullptr;
    if (type != nullptr && key != nullptr) sizes[key->text] = type->element_bytes;
  }
  return sizes;
}

void read_old_storages(TorchFile& file, const Pickle& keys, ByteReader& reader) {
  const auto* list = keys.get<pickle::List>(keys.root);
  if (list == nullptr) refuse_old(file.what, "damaged: its list of storages is none");
  const auto sizes = element_sizes(file.pickle);
  for (const pickle::Ref item : list->items) {
    const auto* key = keys.get<pickle::Text>(item);
    const auto size = key ? sizes.find(key->text) : sizes.end();
    if (size == sizes.end()) refuse_old(file.what, "has a storage of a kind that is not known");
    const auto count = reader.number<std::uint64_t>();
    if (count > reader.left() / size->second) {
      throw UserError(file.what + ": damaged: a storage ends too early (cut short?)");
    }
    file.storages[std::string(key->text)] = reader.piece(count * size->second);
  }
}

TorchFile read_old(std::span<const std::byte> bytes, const std::string& what) {
  ByteReader reader(bytes, what + ": damaged: it ends too early (cut short?)");
  const Pickle magic = next_pickle(reader, bytes, what);
  const auto* number = magic.get<pickle::LargeInteger>(magic.root);
  if (number == nullptr || number->bytes != kOldMagic) {
    throw UserError(what + ": a Python pickle, but not one of torch.save");
  }
  const Pickle protocol = next_pickle(reader, bytes, what);
  const auto* version = protocol.get<std::int64_t>(protocol.root);
  if (version == nullptr || *version != kOldProtocol) {
    refuse_old(what, "of a version of torch.save that is not known");
  }
  check_old_system(next_pickle(reader, bytes, what), what);
  TorchFile file{
      .what = what, .pickle = next_pickle(reader, bytes, what), .storages = {}, .code = {}};
  const Pickle keys = next_pickle(reader, bytes, what);
  read_old_storages(file, keys, reader);
  return file;
}

}  // namespace

const StorageType* find_storage_type(const pickle::Global& global) {
  if (global.module != "torch" && global.module != "torch.storage") return nullptr;
  for (const StorageType& type : kStorageTypes) {
    if (type.name == global.name) return &type;
  }
  return nullptr;
}

TorchFile read_torch_file(std::span<const std::byte> bytes, const std::string& what) {
  if (text_of(bytes).starts_with(kZipMagic)) return read_archive(bytes, what);
  constexpr std::byte kProto{0x80};  // what pickles of protocol 2 and later begin with
  if (!bytes.empty() && bytes.front() == kProto) return read_old(bytes, what);
  throw UserError(what +
                  " is not a file of torch.save or torch.jit.save: neither a zip archive nor a "
                  "pickle");
}

}  // namespace decent
