#pragma once
// The files in a tar archive (POSIX ustar and pax, GNU), found by its headers. No torch.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace decent {

struct TarMember {
  std::string name;
  std::size_t offset = 0;  // of its content in the archive
  std::size_t size = 0;    // all of it lies in the archive
};

/// Calls `act` for every regular file, in the archive's order. Looks at headers only. `file` is the
/// archive's name for messages. Throws UserError for what is no tar archive (a compressed one,
/// too), for a damaged or truncated one, for more content behind its end, and for links and sparse
/// files, whose content is not in one piece.
void for_each_tar_member(std::span<const std::byte> archive, const std::string& file,
                         const std::function<void(const TarMember&)>& act);

/// The text with its ASCII letters in lower case, in which endings are compared.
std::string lower_case(std::string text);

/// The name of a member in shards of WebDataset: neighbouring members of the same key are a sample.
struct NameInSample {
  std::string key;     // up to the first dot of the file's name
  std::string ending;  // behind that dot, in lower case
};

/// nullopt for members that webdataset ignores: names without a key or a dot, and `__meta__`.
std::optional<NameInSample> name_in_sample(std::string_view name);

}  // namespace decent
