#pragma once
// Version and build of this program.

#include <string>
#include <string_view>

namespace decent {

/// "0.1.0".
std::string_view version();

/// The commit that it was built from, plus a hash of the sources if they differ from that commit.
std::string_view build_id();

/// "0.1.0 (build 3f09a1c2..)".
inline std::string version_text() {
  return std::string(version()) + " (build " + std::string(build_id()) + ")";
}

}  // namespace decent
