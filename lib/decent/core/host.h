#pragma once
// The machine that this process runs on.

#include <string>

namespace decent {

/// Its name, as gethostname gives it.
std::string host_name();

}  // namespace decent
