#pragma once
// What errors of a GPU mean for the user: the one place that knows the texts of CUDA, of its
// libraries, of NCCL and of LibTorch's allocator.

#include <optional>
#include <string>
#include <string_view>

#include "decent/core/error.h"

namespace decent {

struct GpuError {
  /// peer_lost where another start of the same run may go well (`--max-restarts`): the GPU is busy
  /// or at fault. user_error where it would end in the same way.
  ExitCode code = ExitCode::user_error;
  /// What to do: lines that each begin with a line break. Where the GPU is at fault they name this
  /// machine.
  std::string advice;

  /// Throws UserError or PeerLost, by the code, with `message` and the advice.
  [[noreturn]] void raise(const std::string& message) const;
};

/// What `text`, all that an error says, is about; nothing where it is not known as a GPU's.
std::optional<GpuError> gpu_error_of(std::string_view text);

}  // namespace decent
