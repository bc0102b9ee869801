#pragma once
// The data of a run that a page holds, as JSON.

#include <string>

#include "decent/runfolder/run_folder.h"

namespace decent {

/// All data of the run in the folder, as one JSON object in ASCII without "<", so that it can be
/// put inside a <script> element. "problems" lists the files that cannot be read. `running`: this
/// process is the run; if not, the folder's lock tells whether the run is running.
std::string run_as_json(const RunFolder& folder, bool running);

}  // namespace decent
