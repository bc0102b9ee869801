#pragma once
// Which program this is.

#include <string_view>

namespace decent {

/// "0.1.0".
std::string_view version();

/// The commit it was built from, and a hash of the sources where they differ from that commit.
std::string_view build_id();

}  // namespace decent
