#pragma once
// The part of LibTorch's errors that is for users.

#include <exception>
#include <string>

namespace decent {

/// The one line of an error that says what went wrong, without C++ and Python stack traces. For an
/// error in TorchScript, the reason after its traceback, with the kind of the error.
std::string reason_of(const std::exception& error);

}  // namespace decent
