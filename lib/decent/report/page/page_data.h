#pragma once
// What a page holds of a run, as JSON.

#include <string>

#include "decent/report/run_folder.h"

namespace decent {

/// All that the folder tells of its run, as one JSON object in ASCII without "<", so that it can
/// stand inside a <script> element. Of a file that cannot be read, it says so in "problems".
/// `running`: this process is the run; else its lock tells.
std::string run_as_json(const RunFolder& folder, bool running);

}  // namespace decent
