#pragma once
// Whether a run under torchrun can save when it is told to stop.

#include <cstdint>
#include <optional>
#include <string>

namespace decent {

/// torchrun passes a signal on to its workers and kills them 30 s later. By then the step that they
/// are in must be done and a checkpoint saved.
class StopTime {
 public:
  /// `bytes`: what the workers of this machine save together. Until a save has been seen it is
  /// taken to be written with 500 MB/s.
  explicit StopTime(std::int64_t bytes);

  void saw_step(double seconds);
  void saw_save(double seconds);

  /// What to tell the user, once, where the 30 s are not enough; known after the second step.
  std::optional<std::string> warning();

 private:
  int steps_ = 0;
  double longest_step_s_ = 0;  // of those after the first, which is slower
  double save_s_ = 0;
  bool save_was_seen_ = false;
  bool warned_ = false;
};

}  // namespace decent
