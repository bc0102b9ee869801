#pragma once
// A timeline of what a worker did, as JSON in Chrome's Trace Event Format, which Perfetto and
// chrome://tracing read.
//
//     Trace trace({.first = 10, .last = 20, .rank = rank, .file = "trace-rank-0000.json"});
//     trace.begin_step(t);                                           // t = 1, 2, ..
//     { const TraceSpan span(&trace, kTrainingLane, "forward"); .. }
//     trace.end_step();
//
// A span is recorded when it ends, if it began in steps first .. last. It takes about 60 bytes of
// memory and 150 bytes of the file. Without a trace (a null pointer) a span costs one check.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace decent {

/// A row of a trace. Spans in one row must follow or contain one another; spans in different rows
/// may overlap.
struct TraceLane {
  int number = 1;
  bool operator==(const TraceLane&) const = default;
};
inline constexpr TraceLane kTrainingLane{1};  // the training thread
inline constexpr TraceLane kDataLane{2};      // batches being read
/// The row of a bucket's exchanges; each bucket has one, because exchanges overlap.
constexpr TraceLane exchange_lane(std::size_t bucket) { return {3 + static_cast<int>(bucket)}; }

/// What viewers show of a span besides its name and times. Negative values are not shown.
struct TraceDetails {
  std::int64_t step = -1;    // part of the name; negative: the step in which the span begins
  std::int64_t bucket = -1;  // part of the name
  std::int64_t bytes = -1;
  int peer = -1;  // a rank
};

struct TraceOptions {
  std::int64_t first = 1;  // steps, both included
  std::int64_t last = 1;
  int rank = 0;
  std::filesystem::path file;  // to write; an existing one is replaced
};

/// Threads: spans may begin and end in any thread; the training thread calls everything else.
class Trace {
 public:
  explicit Trace(TraceOptions options);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const TraceOptions& options() const { return options_; }

  /// Step t begins. Spans that begin before the next call belong to it.
  void begin_step(std::int64_t t);
  /// The step is done. After step last + 1 it writes the file, because the exchanges that step
  /// `last` started end in that step. Throws WriteError.
  void end_step();
  /// Writes the file, unless it is written already or no step was in range. Throws WriteError.
  void finish();

  /// Whether a span that begins now is recorded.
  bool on() const { return on_.load(std::memory_order_relaxed); }

  /// All spans recorded so far, as JSON.
  std::string json() const;

 private:
  friend class TraceSpan;
  using Clock = std::chrono::steady_clock;
  struct Event {
    const char* name;
    TraceLane lane;
    Clock::time_point begin;
    Clock::time_point end;
    TraceDetails details;
    std::int64_t step;  // in which it began; the details may name another one
  };

  void record(const Event& event);
  // Nanoseconds since origin_ns_, of the wall clock.
  std::int64_t time_of(Clock::time_point time) const;
  std::string event_text(const Event& event) const;
  std::string metadata_text(const std::string& name, TraceLane lane,
                            const std::string& value) const;
  std::string lane_texts(const std::vector<Event>& events) const;

  TraceOptions options_;
  std::int64_t wall_ns_;     // of the wall clock, since 1970 ..
  Clock::time_point start_;  // .. at this moment
  std::int64_t origin_ns_;
  std::atomic<bool> on_ = false;
  std::atomic<std::int64_t> step_ = 0;
  bool started_ = false;      // a step was in range
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Event> events_;
  bool written_ = false;
};

/// Records the time from its construction to its destruction or to end(). These may be in different
/// threads, one after the other.
class TraceSpan {
 public:
  /// Records nothing if `trace` is null or not on. `name` must live as long as the trace; use a
  /// string literal.
  TraceSpan(Trace* trace, TraceLane lane, const char* name, TraceDetails details = {}) {
    if (trace != nullptr && trace->on()) begin(*trace, lane, name, details);
  }
  ~TraceSpan() { end(); }
  TraceSpan(TraceSpan&& other) noexcept
      : trace_(std::exchange(other.trace_, nullptr)), event_(other.event_) {}
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  TraceSpan& operator=(TraceSpan&&) = delete;

  /// Whether it is recording: it has begun and not ended.
  bool recording() const { return trace_ != nullptr; }
  /// The span ends here. A second call does nothing.
  void end();

 private:
  void begin(Trace& trace, TraceLane lane, const char* name, const TraceDetails& details);

  Trace* trace_ = nullptr;  // null: nothing to record
  Trace::Event event_{};
};

}  // namespace decent
