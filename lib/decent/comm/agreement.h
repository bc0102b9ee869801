#pragma once
// Stages that every worker runs by itself, and that succeed only if they succeed on all workers.
// A mistake is then reported once, and all workers leave together.
//
// Stages that return a value also need gather.h, which defines the templates. It is separate
// because the JSON library takes long to compile.

#include <concepts>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "decent/comm/outcome.h"

namespace decent {

/// The outcome of a stage on one worker, and the value that it returned; no value if it failed.
template <typename T>
struct Attempt {
  Outcome outcome;
  std::optional<T> value = {};
};

template <typename T>
std::vector<Outcome> outcomes_of(const std::vector<Attempt<T>>& attempts) {
  std::vector<Outcome> outcomes;
  for (const Attempt<T>& attempt : attempts) outcomes.push_back(attempt.outcome);
  return outcomes;
}

template <typename Stage>
concept StageWithValue = std::invocable<Stage&> && !std::is_void_v<std::invoke_result_t<Stage&>>;

template <StageWithValue Stage>
using ValueOf = std::remove_cvref_t<std::invoke_result_t<Stage&>>;

/// All-gather of bytes: sends a worker's bytes to all others and returns the bytes of all, by rank.
/// Collective; calls are matched by name and order.
using Share = std::function<std::vector<std::string>(const std::string& name, std::string own)>;

/// Makes an outcome of an error that carries no exit code (errors of class Error carry one).
using Explain = std::function<Outcome(const std::exception& error)>;

/// ExitCode::bug with the error's message.
Outcome as_bug(const std::exception& error);

/// How the workers of one run agree.
class Agreement {
 public:
  explicit Agreement(Share share, Explain explain = as_bug)
      : share_(std::move(share)), explain_(std::move(explain)) {}

  /// Runs a stage on every worker and returns its results, by rank. Collective. If the stage fails
  /// on any worker, throws SharedError on all of them, see throw_if_failed(). If a worker ends
  /// before it has told its outcome, throws this worker's own error, or PeerLost if it has none.
  void agree(const std::string& name, const std::function<void()>& stage) const;
  template <StageWithValue Stage>
  std::vector<ValueOf<Stage>> agree(const std::string& name, Stage stage) const;

  /// The same for stages that may fail: returns the outcomes by rank and does not throw them.
  std::vector<Outcome> attempt(const std::string& name, const std::function<void()>& stage) const;
  template <StageWithValue Stage>
  std::vector<Attempt<ValueOf<Stage>>> attempt(const std::string& name, Stage stage) const;

  /// All-gather: every worker gives a value and gets the values of all, by rank.
  template <typename T>
  std::vector<T> gather(const std::string& name, const T& own) const;

  /// The outcome of a stage that ended with the error being handled, as all workers receive it.
  Outcome outcome_of_error() const;

 private:
  Outcome run(const std::function<void()>& stage) const;
  std::vector<std::string> tell(const std::string& name, const Outcome& own,
                                std::string bytes) const;

  Share share_;
  Explain explain_;
};

}  // namespace decent
