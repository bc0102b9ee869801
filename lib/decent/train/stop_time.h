#pragma once
// Whether a run under torchrun has time to save when it is asked to stop.

#include <cstdint>
#include <optional>
#include <string>

#include "decent/parallel/named_tensors.h"

namespace decent {

/// torchrun passes a signal on to its workers and kills them 30 s later. By then, they must have
/// finished their step and saved a checkpoint.
class StopTime {
 public:
  /// `bytes`: the size of a checkpoint of all workers of this machine. Until a save has been
  /// measured, 500 MB/s are assumed.
  explicit StopTime(std::int64_t bytes);

  void saw_step(double seconds);
  void saw_save(double seconds);

  /// A warning, returned once, if 30 s are not enough; known after the second step.
  std::optional<std::string> warning();

 private:
  int steps_ = 0;
  double longest_step_s_ = 0;  // without the first step, which is slower
  double save_s_ = 0;
  bool save_was_seen_ = false;
  bool warned_ = false;
};

/// The size of the checkpoint files that `workers` workers write to a shared folder, each with a
/// state like this one, in bytes. `copies_alike`: see ParallelMethod.
std::int64_t checkpoint_bytes(const NamedTensors& state, std::int64_t workers, bool copies_alike);

}  // namespace decent
