#pragma once
// What an error of LibTorch says to a user.

#include <exception>
#include <string>

namespace decent {

/// The one line of an error that says what went wrong, without C++ and Python stack traces; of an
/// error in TorchScript the reason behind its traceback, with the kind of the error.
std::string reason_of(const std::exception& error);

}  // namespace decent
