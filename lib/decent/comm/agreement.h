#pragma once
// Stages that every worker goes through by itself, and that count only where they went well for
// all: mistakes are then reported once, and all workers leave together.
//
// Stages that give a value need gather.h, too: it defines the templates, apart from this file
// because of what the JSON library costs to compile.

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

/// How a stage went for one worker, and what it gave there: nothing where it failed.
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

/// Carries a worker's own bytes to all others and gives those of all, by rank. Collective; calls
/// are matched by name and order.
using Share = std::function<std::vector<std::string>(const std::string& name, std::string own)>;

/// What to tell the others of an error that carries no code (those that do are errors of class
/// Error).
using Explain = std::function<Outcome(const std::exception& error)>;

/// ExitCode::bug, and what the error says.
Outcome as_bug(const std::exception& error);

/// How the workers of one run agree.
class Agreement {
 public:
  explicit Agreement(Share share, Explain explain = as_bug)
      : share_(std::move(share)), explain_(std::move(explain)) {}

  /// Runs a stage on every worker, and goes on only where all of them came through. Returns what
  /// the stage gave, by rank. Collective. Throws SharedError on all where it failed on any, see
  /// throw_if_failed(); PeerLost where a worker ended before it told, or this worker's own error
  /// where it has one.
  void agree(const std::string& name, const std::function<void()>& stage) const;
  template <StageWithValue Stage>
  std::vector<ValueOf<Stage>> agree(const std::string& name, Stage stage) const;

  /// The same for stages that may fail: how it went, by rank.
  std::vector<Outcome> attempt(const std::string& name, const std::function<void()>& stage) const;
  template <StageWithValue Stage>
  std::vector<Attempt<ValueOf<Stage>>> attempt(const std::string& name, Stage stage) const;

  /// What cannot fail: every worker gives a value of its own and gets what all have given, by rank.
  template <typename T>
  std::vector<T> gather(const std::string& name, const T& own) const;

 private:
  Outcome run(const std::function<void()>& stage) const;
  std::vector<std::string> tell(const std::string& name, const Outcome& own,
                                std::string bytes) const;

  Share share_;
  Explain explain_;
};

}  // namespace decent
