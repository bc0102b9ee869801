#pragma once
// The machine that this process runs on, how many of its processors it may use, and names that
// nothing else has.

#include <cstddef>
#include <cstdint>
#include <filesystem>
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

/// "'node7', Debian GNU/Linux 12 (bookworm), 8 processors (name of the model)", for people.
/// Anything that the system does not tell is left out.
std::string machine_text();

/// Random hexadecimal digits; 32 of them are 128 bits, which no other call on any machine returns
/// again.
std::string random_name(std::size_t digits = 32);

/// The number of processors that the scheduler may run this process on (sched_getaffinity), or
/// fewer if its control group (of version 1 or 2) allows less time; at least 1. `proc` and `groups`
/// are the mount points of those file systems.
int usable_processors(const std::filesystem::path& proc = "/proc",
                      const std::filesystem::path& groups = "/sys/fs/cgroup");

/// The time that the control group and the groups around it allow, in processors, rounded up; 0 if
/// nothing limits it.
int processor_quota(const std::filesystem::path& proc, const std::filesystem::path& groups);

}  // namespace decent
