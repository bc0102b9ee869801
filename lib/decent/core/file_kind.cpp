#include "decent/core/file_kind.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/zip.h"

namespace decent {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kTarMagic = 257;  // where it stands in a header

struct Beginning {
  std::string_view bytes;
  FileKind kind;
};

constexpr std::array kBeginnings = std::to_array<Beginning>({
    {"\x93NUMPY"sv, FileKind::npy},
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46"sv, FileKind::torch_save},  // before PyTorch 1.6
    {"\x80\x02"sv, FileKind::pickle},
    {"\x80\x03"sv, FileKind::pickle},
    {"\x80\x04"sv, FileKind::pickle},
    {"\x80\x05"sv, FileKind::pickle},
    {"\x1f\x8b"sv, FileKind::gzip},
    {"\x89HDF\r\n\x1a\n"sv, FileKind::hdf5},
    {"\x89PNG\r\n\x1a\n"sv, FileKind::image},
    {"\xff\xd8\xff"sv, FileKind::image},
});

FileKind kind_of_archive(std::span<const std::byte> bytes) {
  std::vector<ZipEntry> entries;
  try {
    entries = read_zip(bytes, "");
  } catch (const UserError&) {
    return FileKind::zip;
  }
  const auto any = [&](std::string_view ending) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const ZipEntry& entry) { return entry.name.ends_with(ending); });
  };
  if (any("/constants.pkl")) return FileKind::torchscript;
  if (any("/data.pkl")) return FileKind::torch_save;
  if (any("models/model.json") || any("serialized_exported_program.json"))
    return FileKind::torch_export;
  return any(".npy") ? FileKind::npz : FileKind::zip;
}

// The length of a JSON header, then the header.
bool is_safetensors(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  if (bytes.size() <= sizeof length) return false;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length <= bytes.size() - sizeof length && bytes[sizeof length] == std::byte{'{'};
}

bool is_text(std::string_view bytes) {
  constexpr std::size_t kLooked = 4096;
  return !bytes.empty() &&
         std::none_of(bytes.begin(), bytes.begin() + std::min(kLooked, bytes.size()), [](char c) {
           const bool blank = c == '\t' || c == '\n' || c == '\r' || c == '\f';
           return static_cast<unsigned char>(c) < 0x20 && !blank;
         });
}

}  // namespace

FileKind kind_of_file(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("PK\x03\x04")) return kind_of_archive(bytes);
  for (const Beginning& each : kBeginnings)
    if (text.starts_with(each.bytes)) return each.kind;
  if (text.starts_with("PAR1") && text.ends_with("PAR1")) return FileKind::parquet;
  if (text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP")) return FileKind::image;
  if (text.size() > kTarMagic && text.substr(kTarMagic).starts_with("ustar")) return FileKind::tar;
  if (is_safetensors(bytes)) return FileKind::safetensors;
  return is_text(text) ? FileKind::text : FileKind::unknown;
}

std::string kind_text(FileKind kind) {
  switch (kind) {
    case FileKind::safetensors:
      return "a safetensors file";
    case FileKind::npz:
      return "a NumPy archive (.npz)";
    case FileKind::npy:
      return "a single NumPy array (.npy)";
    case FileKind::torch_save:
      return "a file of torch.save";
    case FileKind::torchscript:
      return "a TorchScript model";
    case FileKind::torch_export:
      return "a model of torch.export (.pt2)";
    case FileKind::zip:
      return "a zip archive";
    case FileKind::tar:
      return "a tar archive";
    case FileKind::gzip:
      return "compressed by gzip";
    case FileKind::pickle:
      return "a Python pickle";
    case FileKind::parquet:
      return "a Parquet file";
    case FileKind::hdf5:
      return "an HDF5 file";
    case FileKind::image:
      return "an image";
    case FileKind::text:
      return "a text";
    case FileKind::unknown:
      break;
  }
  return "of an unknown kind";
}

}  // namespace decent
