#include "decent/train/stop_time.h"

#include <algorithm>

#include "decent/core/text.h"
#include "decent/parallel/named_tensors.h"

namespace decent {
namespace {

constexpr double kTorchrunWaits = 30;  // seconds; PContext.close in torch.distributed.elastic
constexpr double kMarginSeconds = 5;   // for signals, agreements and the end of the process
constexpr double kBytesPerSecond = 500e6;
constexpr int kStepsToKnow = 2;

std::string about(double seconds) {
  return seconds_text(std::chrono::duration<double>(std::max(0.1, seconds)));
}

}  // namespace

StopTime::StopTime(std::int64_t bytes) : save_s_(static_cast<double>(bytes) / kBytesPerSecond) {}

void StopTime::saw_step(double seconds) {
  if (++steps_ > 1) longest_step_s_ = std::max(longest_step_s_, seconds);
}

void StopTime::saw_save(double seconds) {
  save_s_ = save_was_seen_ ? std::max(save_s_, seconds) : seconds;
  save_was_seen_ = true;
}

std::optional<std::string> StopTime::warning() {
  const bool fits = longest_step_s_ + save_s_ <= kTorchrunWaits - kMarginSeconds;
  if (warned_ || fits || steps_ < kStepsToKnow) return std::nullopt;
  warned_ = true;
  return "a step takes " + about(longest_step_s_) + " and a save " +
         (save_was_seen_ ? "" : "probably ") + about(save_s_) +
         ", but torchrun kills its workers 30 s after it is told to stop, which would lose what "
         "was "
         "trained since the last checkpoint.\nTo stop with a checkpoint send SIGUSR1 to one of the "
         "workers (pkill -USR1 -o decent-train) rather than a signal to torchrun; or save more "
         "often (checkpoint.every_steps)";
}

std::int64_t checkpoint_bytes(const NamedTensors& state, std::int64_t workers, bool copies_alike) {
  const std::int64_t of_another = bytes_of(copies_alike ? parts_of(state).own : state);
  return bytes_of(state) + of_another * (workers - 1);
}

}  // namespace decent
