#pragma once
// The machine that this process runs on.

#include <cstdint>
#include <string>

namespace decent {

/// The machine's name, from gethostname.
std::string host_name();

/// The same text for processes that can open one another's files in /proc and reach one another by
/// loopback: processes of one boot of a machine, of one user, and in the same namespaces of
/// processes and of the network. Empty if the system does not tell.
std::string host_identity();

/// The machine's memory in bytes.
std::int64_t machine_memory();

}  // namespace decent
