#include "decent/train/folder_sharing.h"

#include <random>
#include <string>
#include <system_error>

#include "decent/comm/gather.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

// Nobody has asked for this name before, so that network file systems cannot have remembered that
// it is not there.
std::string new_name(int rank) {
  std::random_device device;
  std::string name = kMarkerPrefix + std::to_string(rank);
  for (int i = 0; i < 4; ++i) name += "-" + std::to_string(device());
  return name;
}

}  // namespace

std::vector<int> workers_sharing(World& world, int rank, const std::filesystem::path& folder) {
  Outcome own{ExitCode::done, new_name(rank)};
  const std::filesystem::path file = folder / own.message;
  try {
    create_folders(folder);
    write_file(file, "");
  } catch (const Error& error) {
    own = {error.code(), error.what()};
  }
  const std::vector<Outcome> outcomes = world.gather("folder", own);
  std::error_code failed;
  std::vector<int> sharing;
  for (std::size_t other = 0; other < outcomes.size(); ++other) {
    const bool self = static_cast<int>(other) == rank;
    if (self || std::filesystem::exists(folder / outcomes[other].message, failed)) {
      sharing.push_back(static_cast<int>(other));
    }
  }
  world.gather("folder/seen", true);
  std::filesystem::remove(file, failed);
  throw_if_failed(outcomes);
  return sharing;
}

}  // namespace decent
