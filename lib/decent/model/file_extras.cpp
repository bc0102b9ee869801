#include "decent/model/file_extras.h"

#include <algorithm>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/core/text.h"
#include "decent/core/zip.h"

namespace decent {
namespace {

// All records of such an archive are in one folder of any name.
bool is_extra(const ZipEntry& entry, const std::string& name) {
  const std::size_t folder = entry.name.find('/');
  return folder != std::string_view::npos && entry.name.substr(folder + 1) == record_of_extra(name);
}

std::vector<ZipEntry> entries_of(const MappedFile& file, const std::string& what) {
  try {
    return read_zip(file.bytes(), what);
  } catch (const UserError&) {
    return {};
  }
}

std::string text_in(const MappedFile& file, const std::string& name, const std::string& what) {
  const std::vector<ZipEntry> entries = entries_of(file, what);
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const ZipEntry& entry) { return is_extra(entry, name); });
  if (found == entries.end()) return "";
  // A limit, because deflated bytes can inflate to a thousand times as many.
  constexpr std::uint64_t kMaxExtraBytes = std::uint64_t{64} << 20;
  const std::string record = what + ": record " + in_quotes(found->name);
  if (found->size > kMaxExtraBytes)
    throw UserError(record + " is damaged: it has " + std::to_string(found->size) + " bytes");
  const std::vector<std::byte> content = zip_content(*found, record);
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

}  // namespace

std::string text_in_metadata(const std::map<std::string, std::string>& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? "" : found->second;
}

std::string text_in_archive(const std::filesystem::path& path, const char* name) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return "";
  return text_in(MappedFile(path), name, "'" + path.string() + "'");
}

std::string data_in_archive(const std::filesystem::path& path) {
  return text_in_archive(path, kDataInFile);
}

std::string text_in_safetensors(const std::filesystem::path& path, const char* name) {
  try {
    const MappedFile file(path);
    return text_in_metadata(parse_safetensors(file.bytes(), path.string()).metadata, name);
  } catch (const UserError&) {
    return "";
  }
}

std::string data_in_safetensors(const std::filesystem::path& path) {
  return text_in_safetensors(path, kDataInFile);
}

}  // namespace decent
