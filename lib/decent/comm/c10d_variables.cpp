#include "decent/comm/c10d_variables.h"

#include <c10/util/Logging.h>

#include <cstdlib>
#include <utility>

namespace decent {

void silence_c10d_warnings() {
  constexpr std::pair<const char*, const char*> kVariables[] = {
      {"TORCH_CPP_LOG_LEVEL", "ERROR"},
      // The watchdog of an NCCL group throws NCCL's and CUDA's errors out of its thread, which ends
      // the process before this library has reported them. ErrorWatch finds NCCL's; CUDA's come
      // with the next call.
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
      {"TORCH_NCCL_RETHROW_CUDA_ERRORS", "0"},
      // Another thread of the group ends the process if operations take long, or if it was stopped.
      {"TORCH_NCCL_ENABLE_MONITORING", "0"},
      {"TORCH_NCCL_DUMP_ON_TIMEOUT", "0"},
      // After an error the watchdog sleeps four times as long as this, and holds the lock that
      // operations and the group's destructor need.
      {"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "0"},
      // A record of each operation, which nobody reads.
      {"TORCH_FR_BUFFER_SIZE", "0"},
  };
  for (const auto& [name, value] : kVariables) ::setenv(name, value, /*overwrite=*/0);
  c10::initLogging();
}

}  // namespace decent
