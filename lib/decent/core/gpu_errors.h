#pragma once
// What errors of a GPU mean for the user: the one place that knows the texts of CUDA, of its
// libraries, of NCCL and of LibTorch's allocator.

#include <optional>
#include <string>
#include <string_view>

#include "decent/core/error.h"

namespace decent {

struct GpuError {
  /// peer_lost if another start of the same run may succeed (`--max-restarts`), because the GPU is
  /// busy or faulty; user_error if it would fail in the same way.
  ExitCode code = ExitCode::user_error;
  /// What to do: lines that each begin with a line break. They name this machine if its GPU is
  /// faulty.
  std::string advice;

  /// Throws UserError or PeerLost, by the code, with `message` and the advice.
  [[noreturn]] void raise(const std::string& message) const;
};

/// Classifies an error by `text`, its whole message; nothing if it is not a known error of a GPU.
std::optional<GpuError> gpu_error_of(std::string_view text);

}  // namespace decent
