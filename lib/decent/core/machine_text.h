#pragma once
// The machine that this process runs on, for people.

#include <string>

namespace decent {

/// "'node7', Debian GNU/Linux 12 (bookworm), 8 processors (name of the model)". Anything that the
/// system does not tell is left out.
std::string machine_text();

}  // namespace decent
