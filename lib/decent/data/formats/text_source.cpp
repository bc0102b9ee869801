// Text as its bytes.

#include <utility>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/gzip.h"
#include "decent/data/built_in.h"
#include "decent/data/formats/windows.h"
#include "decent/data/shards.h"

namespace decent {
namespace {

std::unique_ptr<Source> open_text(const std::filesystem::path& path, const Windows& windows) {
  auto file = std::make_shared<const MappedFile>(path);
  // UTF-8 never begins like this.
  if (is_gzip(file->bytes())) {
    throw UserError("'" + path.string() +
                    "': is compressed by gzip, and samples are read from anywhere in it; "
                    "decompress it first: gunzip -k FILE");
  }
  const auto count = static_cast<std::int64_t>(file->bytes().size());
  return make_windows_source(
      {.file = std::move(file), .type = IdType::uint8, .pieces = {{0, count}}}, windows,
      std::nullopt);
}

}  // namespace

DataFormat text_format() {
  return {.name = "text",
          .keys = {path_key("The file, a list of files or a glob; their bytes are ids, 0 to 255."),
                   length_key(), stride_key()},
          .open = [](const Options& options) {
            return open_shards(expand_globs(options.get<Paths>("path")),
                               [windows = windows_of(options)](const std::filesystem::path& path) {
                                 return open_text(path, windows);
                               });
          }};
}

}  // namespace decent
