#pragma once
// The machine that this process runs on, for people.

#include <string>

namespace decent {

/// "'node7', Debian GNU/Linux 12 (bookworm), 8 processors (name of the model)", without what the
/// system does not tell.
std::string machine_text();

}  // namespace decent
