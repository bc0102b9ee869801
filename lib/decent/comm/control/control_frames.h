#pragma once
// What workers tell each other on control connections: frames, each a length and a text. Internal
// to this room. All workers of a run have the same build (world.cpp checks it), so there is no
// version.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "decent/comm/control/control_types.h"
#include "decent/comm/control/farewell.h"

namespace decent::frames {

struct StopRequest {
  int signal = 0;
  int rank = 0;
};
struct Given {
  std::string topic;  // without a zero byte
  std::string bytes;
};

/// Worker `rank` is lost.
struct News {
  int rank = 0;
  LossKind kind = LossKind::gone;
  std::string reason;
};

std::string beat(const Position& position);
std::string stop(const StopRequest& stop);
std::string cap(std::int64_t step);
std::string failure(const Failure& failure);
std::string given(const Given& given);
std::string leave();
std::string news(const News& news);
std::string claim(const Farewell::Claim& claim);
std::string arrival();

struct Frame {
  std::string_view content;
  std::size_t bytes = 0;  // including its length
};
/// The first frame of `bytes`; nullopt if it is not complete yet.
std::optional<Frame> next(std::string_view bytes);

/// These return nullopt for a frame of another kind.
std::optional<Position> read_beat(std::string_view content);
std::optional<StopRequest> read_stop(std::string_view content);
std::optional<std::int64_t> read_cap(std::string_view content);
std::optional<Failure> read_failure(std::string_view content);
std::optional<Given> read_given(std::string_view content);
std::optional<News> read_news(std::string_view content);
std::optional<Farewell::Claim> read_claim(std::string_view content);
bool is_leave(std::string_view content);
bool is_arrival(std::string_view content);

}  // namespace decent::frames
