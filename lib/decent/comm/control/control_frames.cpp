#include "decent/comm/control/control_frames.h"

#include <charconv>
#include <cstring>
#include <utility>

namespace decent::frames {
namespace {

// Messages have a few lines; longer ones are cut.
constexpr std::size_t kLongestMessage = 8192;

std::string framed(const std::string& content) {
  const auto size = static_cast<std::uint32_t>(content.size());
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + content;
}

// Takes the next number of "12 3 ..".
std::int64_t take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return value;
}

std::optional<std::string_view> after(char kind, std::string_view content) {
  if (!content.starts_with(kind)) return std::nullopt;
  return content.substr(1);
}

std::string numbers(char kind, std::int64_t a, std::int64_t b) {
  return kind + std::to_string(a) + " " + std::to_string(b);
}

}  // namespace

std::string beat(const Position& position) {
  return framed(numbers('B', position.step, position.turn) + " " +
                std::to_string(static_cast<int>(position.operation)));
}
std::string stop(const StopRequest& stop) { return framed(numbers('S', stop.signal, stop.rank)); }
std::string cap(std::int64_t step) { return framed("C" + std::to_string(step)); }
std::string leave() { return framed("L"); }

std::string failure(const Failure& failure) {
  return framed(numbers('F', static_cast<int>(failure.code), failure.rank) + " " +
                (failure.lost ? "1 " : "0 ") + failure.message.substr(0, kLongestMessage));
}

std::string news(const News& news) {
  return framed(numbers('X', news.rank, static_cast<int>(news.kind)) + " " +
                news.reason.substr(0, kLongestMessage));
}

std::string claim(const Farewell::Claim& claim) {
  std::string text = "D" + std::to_string(claim.step);
  for (const int rank : claim.lost) text += " " + std::to_string(rank);
  return framed(text);
}

std::string arrival() { return framed("A"); }

std::string given(const Given& given) { return framed('G' + given.topic + '\0' + given.bytes); }

std::optional<Frame> next(std::string_view bytes) {
  std::uint32_t size = 0;
  if (bytes.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (bytes.size() - sizeof size < size) return std::nullopt;
  return Frame{bytes.substr(sizeof size, size), sizeof size + size};
}

std::optional<Position> read_beat(std::string_view content) {
  auto text = after('B', content);
  if (!text) return std::nullopt;
  Position position;
  position.step = take_number(*text);
  position.turn = take_number(*text);
  position.operation = static_cast<Operation>(take_number(*text));
  return position;
}

std::optional<StopRequest> read_stop(std::string_view content) {
  auto text = after('S', content);
  if (!text) return std::nullopt;
  const auto signal = static_cast<int>(take_number(*text));
  return StopRequest{signal, static_cast<int>(take_number(*text))};
}

std::optional<std::int64_t> read_cap(std::string_view content) {
  auto text = after('C', content);
  if (!text) return std::nullopt;
  return take_number(*text);
}

std::optional<Failure> read_failure(std::string_view content) {
  auto text = after('F', content);
  if (!text) return std::nullopt;
  Failure failure;
  failure.code = static_cast<ExitCode>(take_number(*text));
  failure.rank = static_cast<int>(take_number(*text));
  failure.lost = take_number(*text) != 0;
  failure.message = *text;
  return failure;
}

std::optional<Given> read_given(std::string_view content) {
  const auto text = after('G', content);
  if (!text) return std::nullopt;
  const std::size_t end = text->find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return Given{std::string(text->substr(0, end)), std::string(text->substr(end + 1))};
}

std::optional<News> read_news(std::string_view content) {
  auto text = after('X', content);
  if (!text) return std::nullopt;
  News news;
  news.rank = static_cast<int>(take_number(*text));
  news.kind = static_cast<LossKind>(take_number(*text));
  news.reason = *text;
  return news;
}

std::optional<Farewell::Claim> read_claim(std::string_view content) {
  auto text = after('D', content);
  if (!text) return std::nullopt;
  Farewell::Claim claim;
  claim.step = take_number(*text);
  while (!text->empty()) claim.lost.insert(static_cast<int>(take_number(*text)));
  return claim;
}

bool is_leave(std::string_view content) { return content == "L"; }
bool is_arrival(std::string_view content) { return content == "A"; }

}  // namespace decent::frames
