#include "decent/resume/folder_sharing.h"

#include <string>
#include <system_error>

#include "decent/comm/gather.h"
#include "decent/core/file.h"
#include "decent/core/host.h"

namespace decent {

std::vector<int> workers_sharing(const Team& team, const std::filesystem::path& folder) {
  // Nobody has asked for this name before, so no network file system has cached that it does not
  // exist.
  const std::string own = kMarkerPrefix + std::to_string(team.rank()) + "-" + random_name();
  const auto markers = team.attempt("folder", [&] {
    create_folders(folder);
    write_file(folder / own, "");
    return own;
  });
  std::error_code failed;
  std::vector<int> sharing;
  for (std::size_t other = 0; other < markers.size(); ++other) {
    const auto& marker = markers[other].value;
    const bool self = static_cast<int>(other) == team.rank();
    if (self || (marker && std::filesystem::exists(folder / *marker, failed))) {
      sharing.push_back(static_cast<int>(other));
    }
  }
  team.agree("folder/seen", [] {});  // everyone has looked: the markers can go
  std::filesystem::remove(folder / own, failed);
  throw_if_failed(outcomes_of(markers));
  return sharing;
}

}  // namespace decent
