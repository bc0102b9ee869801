#pragma once
// Which workers see the same folder: all of one machine, all of a shared file system, or each its
// own.

#include <filesystem>
#include <vector>

#include "decent/comm/team.h"

namespace decent {

/// The workers show each other files of such names.
constexpr const char* kMarkerPrefix = ".worker-";

/// Makes the folder where it is not there, and finds the workers, this one included, whose files in
/// it this worker sees. Collective. Throws SharedError where a worker cannot write to it.
std::vector<int> workers_sharing(const Team& team, const std::filesystem::path& folder);

}  // namespace decent
