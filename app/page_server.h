#pragma once
// --serve: report pages for a browser on this machine, with new figures as runs write them.

#include <span>

#include "decent/runfolder/run_folder.h"

namespace decent {

/// Listens on 127.0.0.1 only, prints the address, and answers until SIGINT or SIGTERM, which end
/// the process with 0. `port` 0: any free port. Throws UserError if it cannot listen on the port.
[[noreturn]] void serve_page(std::span<const RunFolder> runs, int port);

}  // namespace decent
