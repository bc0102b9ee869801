#pragma once
// What workers tell each other on control connections: frames, each a length and a text. Internal
// to this room. All workers of a run have the same build (world.cpp checks it), so there is no
// version.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "decent/comm/control/control_types.h"

namespace decent::frames {

struct StopRequest {
  int signal = 0;
  int rank = 0;
};
struct Given {
  std::string topic;  // without a zero byte
  std::string bytes;
};

std::string beat(const Position& position);
std::string stop(const StopRequest& stop);
std::string cap(std::int64_t step);
std::string failure(const Failure& failure);
std::string given(const Given& given);
std::string leave();

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

}  // namespace decent::frames
