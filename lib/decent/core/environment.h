#pragma once
// Variables of the environment.

#include <functional>
#include <optional>
#include <string>

namespace decent {

/// Looks up a variable's value; nothing if it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

/// Looks in the environment of this process.
std::optional<std::string> environment_variable(const std::string& name);

}  // namespace decent
