#include "decent/comm/control/own_progress.h"

#include <utility>

#include "decent/core/text.h"

namespace decent {

std::string Stall::message(std::span<const std::string> workers) const {
  const bool one = workers.size() == 1;
  return (one ? "worker " : "workers ") + join(workers) + (one ? " has" : " have") + " been " +
         std::string(text_of(position.operation)) + " (step " + std::to_string(position.step) +
         ") for " + seconds_text(waited) + ", longer than " + setting + ": " + seconds_text(limit) +
         " allows.\nNo heartbeat is missing: the operation hangs, or needs more time than that.";
}

void OwnProgress::set_limit(std::chrono::duration<double> limit, std::string setting) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
  setting_ = std::move(setting);
  still_ = {};
}

std::optional<std::chrono::duration<double>> OwnProgress::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

void OwnProgress::begin(Operation operation) {
  const std::lock_guard lock(mutex_);
  position_.operation = operation;
  ++position_.turn;
  still_ = {};
}

void OwnProgress::begin_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  position_.step = step;
  position_.turn = 0;
  still_ = {};
}

void OwnProgress::move() {
  const std::lock_guard lock(mutex_);
  still_ = {};
}

Position OwnProgress::position() const {
  const std::lock_guard lock(mutex_);
  return position_;
}

std::optional<Stall> OwnProgress::look(Duration awake) {
  const std::lock_guard lock(mutex_);
  still_ += awake;
  if (!limit_ || still_ < *limit_) return std::nullopt;
  return Stall{.position = position_, .waited = still_, .limit = *limit_, .setting = setting_};
}

}  // namespace decent
