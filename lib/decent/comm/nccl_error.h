#pragma once
// Errors of calls into c10d's NCCL group. (Here and not in room cuda, so that tests need no CUDA.)

#include <c10/util/Exception.h>

#include <exception>
#include <string>
#include <string_view>

#include "decent/comm/group_text.h"
#include "decent/core/error.h"
#include "decent/core/gpu_errors.h"

namespace decent {

/// Whether an error comes from this process's own GPU and not from NCCL. Any call may report such
/// an error, because CUDA reports the error of an earlier kernel at the next call.
inline bool is_of_this_device(const std::exception& error) {
  return dynamic_cast<const c10::AcceleratorError*>(&error) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         std::string_view(error.what()).starts_with("CUDA");
}

/// The text of NCCL's error: its first line, and the line after "Last error:", which has the cause.
inline std::string nccl_reason(const std::exception& error) {
  constexpr std::string_view kCause = "\nLast error:\n";
  const std::string_view text = error.what();
  const std::size_t found = text.find(kCause);
  if (found == text.npos) return first_line(error);
  const std::string_view cause = text.substr(found + kCause.size());
  const std::string line(cause.substr(0, cause.find('\n')));
  return line.empty() ? first_line(error) : first_line(error) + ": " + line;
}

/// Rethrows `error`, which is being handled: unchanged if it comes from this process's GPU, else
/// with the message that `what` failed, as UserError if the user can fix it, or as PeerLost.
[[noreturn]] inline void throw_nccl_error(const std::string& what, const std::exception& error) {
  if (is_of_this_device(error)) throw;
  const std::string message = what + ": " + nccl_reason(error);
  if (const auto known = gpu_error_of(message)) known->raise(message);
  throw PeerLost(message);
}

}  // namespace decent
