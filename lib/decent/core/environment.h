#pragma once
// Variables of the environment.

#include <functional>
#include <optional>
#include <string>

namespace decent {

/// A variable's value; nothing where it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

/// This process's.
std::optional<std::string> environment_variable(const std::string& name);

}  // namespace decent
