#include "decent/comm/control/stop_requests.h"

#include <utility>

namespace decent {
namespace {

using namespace std::chrono_literals;

// Launchers send the same signal twice at once.
constexpr auto kSecondSignal = 3s;

}  // namespace

std::string StopRequests::Request::message() const {
  return signal == 0 ? launcher + ", which started this program, has ended"
                     : "stopped at once by a second signal (" + signal_name(signal) + ")";
}

void StopRequests::note_signal(int signal) noexcept {
  last_signal_.store(signal, std::memory_order_relaxed);
  signals_.fetch_add(1, std::memory_order_release);
}

void StopRequests::note_launcher_end() {
  launcher_ended_ = true;
  launcher_.end.close();
}

std::optional<StopRequests::Request> StopRequests::take(Clock::time_point now) {
  if (auto request = take_signal(now)) return request;
  return take_launcher_end();
}

std::optional<StopRequests::Request> StopRequests::take_signal(Clock::time_point now) {
  const int count = signals_.load(std::memory_order_acquire);
  if (count == signals_seen_) return std::nullopt;
  const int signal = last_signal_.load(std::memory_order_relaxed);
  if (std::exchange(signals_seen_, count) == 0) {
    first_signal_ = now;
    return Request{.signal = signal, .at_once = false};
  }
  if (now - first_signal_ < kSecondSignal) return std::nullopt;
  return Request{.signal = signal, .at_once = true};
}

std::optional<StopRequests::Request> StopRequests::take_launcher_end() {
  const LauncherEnd meaning = meaning_.load();
  if (!launcher_ended_ || meaning == LauncherEnd::nothing) return std::nullopt;
  launcher_ended_ = false;  // once is enough
  return Request{.signal = 0, .at_once = meaning == LauncherEnd::fail, .launcher = launcher_.name};
}

}  // namespace decent
