#include "decent/core/trace.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "decent/core/file.h"
#include "decent/core/host.h"

namespace decent {
namespace {

// Readers keep times as doubles: microseconds since 1970 would lose their fraction there. Times are
// counted from the last whole multiple of this, which is the same for all workers of a run unless
// one starts before a multiple and another after it (possible once in 30 days; the file tells the
// origin).
constexpr std::int64_t kOriginEvery = std::int64_t{30} * 24 * 3600 * 1'000'000'000;

std::int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Nanoseconds as microseconds, exactly.
std::string microseconds(std::int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                static_cast<long long>(ns % 1000));
  return text;
}

// Perfetto treats process 0 as the kernel's idle process.
std::string process_of(int rank) { return "\"pid\":" + std::to_string(rank + 1); }

std::string name_of(TraceLane lane) {
  if (lane == kTrainingLane) return "training";
  if (lane == kDataLane) return "reading data";
  return "exchange of bucket " + std::to_string(lane.number - exchange_lane(0).number);
}

}  // namespace

Trace::Trace(TraceOptions options)
    : options_(std::move(options)),
      wall_ns_(wall_clock_ns()),
      start_(Clock::now()),
      origin_ns_(wall_ns_ - wall_ns_ % kOriginEvery) {}

void Trace::begin_step(std::int64_t t) {
  step_ = t;
  const bool on = t >= options_.first && t <= options_.last;
  if (on) started_ = true;
  on_ = on;
}

void Trace::end_step() {
  if (step_ > options_.last) finish();
}

void Trace::finish() {
  on_ = false;
  if (!std::exchange(started_, false)) return;
  write_file(options_.file, json());
  const std::lock_guard lock(mutex_);
  written_ = true;
  events_ = {};
}

void Trace::record(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (!written_) events_.push_back(event);
}

std::int64_t Trace::time_of(Clock::time_point time) const {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time - start_);
  return wall_ns_ - origin_ns_ + since.count();
}

std::string Trace::event_text(const Event& event) const {
  const TraceDetails& details = event.details;
  std::string name = event.name;
  const auto number = [&name](const char* what, std::int64_t value) {
    if (value >= 0) name += (name.empty() ? "" : " ") + std::string(what) + std::to_string(value);
  };
  number("step ", details.step);
  number("bucket ", details.bucket);
  std::string arguments;
  const auto add = [&arguments](const char* key, std::int64_t value) {
    if (value < 0) return;
    arguments +=
        (arguments.empty() ? "\"" : ",\"") + std::string(key) + "\":" + std::to_string(value);
  };
  add("step", details.step >= 0 ? details.step : event.step);
  add("bucket", details.bucket);
  add("bytes", details.bytes);
  add("peer", details.peer);
  const std::int64_t begin = time_of(event.begin);
  return "{\"name\":" + json_text(name) + ",\"ph\":\"X\"," + process_of(options_.rank) +
         ",\"tid\":" + std::to_string(event.lane.number) + ",\"ts\":" + microseconds(begin) +
         ",\"dur\":" + microseconds(time_of(event.end) - begin) + ",\"args\":{" + arguments + "}}";
}

// `value` is the JSON value of the argument that viewers read.
std::string Trace::metadata_text(const std::string& name, TraceLane lane,
                                 const std::string& value) const {
  const std::string argument = name.ends_with("sort_index") ? "sort_index" : "name";
  return "{\"name\":\"" + name + "\",\"ph\":\"M\"," + process_of(options_.rank) +
         ",\"tid\":" + std::to_string(lane.number) + ",\"args\":{\"" + argument + "\":" + value +
         "}},\n";
}

// Names and order of the process and its lanes.
std::string Trace::lane_texts(const std::vector<Event>& events) const {
  std::set<int> lanes;
  for (const Event& event : events) lanes.insert(event.lane.number);
  const std::string rank = std::to_string(options_.rank);
  std::string text = metadata_text("process_name", kTrainingLane,
                                   json_text("rank " + rank + " (" + host_name() + ")")) +
                     metadata_text("process_sort_index", kTrainingLane, rank);
  for (const int number : lanes) {
    const TraceLane lane{number};
    text += metadata_text("thread_name", lane, json_text(name_of(lane)));
    text += metadata_text("thread_sort_index", lane, std::to_string(number));
  }
  return text;
}

std::string Trace::json() const {
  std::vector<Event> events;
  {
    const std::lock_guard lock(mutex_);
    events = events_;
  }
  // A span comes before the spans that it contains.
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::string text =
      "{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":" + std::to_string(origin_ns_) +
      ",\"traceEvents\":[\n" + lane_texts(events);
  for (const Event& event : events) text += event_text(event) + ",\n";
  text.resize(text.size() - 2);  // the last comma
  return text + "\n]}\n";
}

void TraceSpan::begin(Trace& trace, TraceLane lane, const char* name, const TraceDetails& details) {
  trace_ = &trace;
  event_ = {.name = name,
            .lane = lane,
            .begin = Trace::Clock::now(),
            .end = {},
            .details = details,
            .step = trace.step_};
}

void TraceSpan::end() {
  if (trace_ == nullptr) return;
  event_.end = Trace::Clock::now();
  std::exchange(trace_, nullptr)->record(event_);
}

}  // namespace decent
