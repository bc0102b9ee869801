#pragma once
// Which workers see the same folder: those of one machine, those of a shared file system, or each
// worker only its own.

#include <filesystem>
#include <vector>

#include "decent/comm/team.h"

namespace decent {

/// Prefix of the files that workers write so that others can see them.
constexpr const char* kMarkerPrefix = ".worker-";

/// Makes the folder if it does not exist, and finds the workers, including this one, whose files in
/// it are visible to this worker. Collective. Throws SharedError if a worker cannot write to it.
std::vector<int> workers_sharing(const Team& team, const std::filesystem::path& folder);

}  // namespace decent
