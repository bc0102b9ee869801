#include "decent/train/evaluation/evaluation_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "decent/config/scalars.h"
#include "decent/core/text.h"
#include "decent/resume/compatibility.h"

namespace decent {
namespace {

double measured(const EvalMetrics& metrics, const std::string& name) {
  if (name == "loss") return metrics.loss;
  for (const Score& score : metrics.scores)
    if (score.name == name) return score.value;
  throw std::logic_error("evaluations do not measure " + name);
}

// Reads the numbers under one name in a manifest: "stop.loss.best" is `best` of "stop.loss".
class StateOf {
 public:
  StateOf(const Numbers& numbers, const std::string& name) {
    for (const auto& [full_name, value] : numbers)
      if (full_name.starts_with(name + "."))
        own_.emplace_back(full_name.substr(name.size() + 1), value);
  }
  bool is_there() const { return !own_.empty(); }
  std::optional<double> find(const std::string& name) const { return find_number(own_, name); }
  std::int64_t count(const std::string& name) const { return std::llround(find(name).value_or(0)); }
  BestSoFar best() const {
    return {.value = find("best"), .without_improvement = count("without_improvement")};
  }
  // Each name is the first step of a fall; the manifest sorts them as text, not as numbers.
  std::vector<Plateau::Fall> falls() const {
    std::vector<Plateau::Fall> falls;
    for (const auto& [first_step, lr] : own_) {
      std::int64_t step = 0;
      const char* end = first_step.data() + first_step.size();
      if (std::from_chars(first_step.data(), end, step).ptr == end) falls.push_back({step, lr});
    }
    std::sort(falls.begin(), falls.end(), [](const Plateau::Fall& a, const Plateau::Fall& b) {
      return a.first_step < b.first_step;
    });
    return falls;
  }

 private:
  Numbers own_;
};

void add_best(const std::string& name, const BestSoFar& best, Numbers& numbers) {
  if (best.value) numbers.emplace_back(name + ".best", *best.value);
  numbers.emplace_back(name + ".without_improvement", best.without_improvement);
}

}  // namespace

EvaluationRules::EvaluationRules(const Recipe& recipe, std::shared_ptr<Plateau> plateau)
    : plateau_(std::move(plateau)),
      plateau_metric_(recipe.schedule.options.get<std::string>("metric")) {
  if (recipe.train.stop) stop_.emplace(*recipe.train.stop);
}

void EvaluationRules::saw(const EvalMetrics& metrics) {
  if (metrics.step == 0) return;
  if (stop_) stop_->saw(metrics.step, measured(metrics, stop_->metric()));
  if (!plateau_ || !plateau_->saw(metrics.step, measured(metrics, plateau_metric_))) return;
  news_ = "the learning rate falls to " + number_text(plateau_->state().lr()) + ": " +
          plateau_metric_ + " has got no better";
}

std::string EvaluationRules::take_news() { return std::exchange(news_, {}); }

std::string EvaluationRules::stop_name() const { return "stop." + stop_->metric(); }

std::string EvaluationRules::plateau_name() const {
  return "plateau." + plateau_metric_ + (plateau_->options().mode == "max" ? ".max" : ".min");
}

Numbers EvaluationRules::state() const {
  Numbers numbers;
  if (stop_) {
    add_best(stop_name(), stop_->state().best, numbers);
    numbers.emplace_back(stop_name() + ".best_step", stop_->state().best_step);
  }
  if (plateau_) {
    const Plateau::State& state = plateau_->state();
    numbers.emplace_back("plateau.start", state.start);
    for (const Plateau::Fall& fall : state.falls)
      numbers.emplace_back("plateau.falls." + std::to_string(fall.first_step), fall.lr);
    add_best(plateau_name(), state.best, numbers);
    numbers.emplace_back(plateau_name() + ".cooldown", state.cooldown);
  }
  return numbers;
}

bool EvaluationRules::restore_stop(const Numbers& numbers, bool alike) {
  if (!stop_ || !StateOf(numbers, "stop").is_there()) return true;
  const StateOf state(numbers, stop_name());
  if (!alike || !state.is_there()) return false;
  stop_->restore({.best = state.best(), .best_step = state.count("best_step")});
  return true;
}

bool EvaluationRules::restore_plateau(const Numbers& numbers, bool alike) {
  const auto start = find_number(numbers, "plateau.start");
  if (!plateau_ || !start) return true;
  Plateau::State restored{.start = *start, .falls = StateOf(numbers, "plateau.falls").falls()};
  const StateOf state(numbers, plateau_name());
  const bool goes_on = alike && state.is_there();
  if (goes_on) {
    restored.best = state.best();
    restored.cooldown = state.count("cooldown");
  }
  plateau_->restore(restored);
  return goes_on;
}

std::optional<std::string> EvaluationRules::restore(const Manifest& saved, const Facts& now) {
  const bool alike = !contradict(measure_of(saved.facts), measure_of(now));
  std::vector<std::string> again;
  if (!restore_stop(saved.evaluations, alike)) again.emplace_back("train.stop");
  if (!restore_plateau(saved.evaluations, alike)) again.emplace_back("schedule: plateau");
  if (again.empty()) return std::nullopt;
  return join(again, " and ") +
         ": the best value until now cannot be compared with what comes, since the metric, the "
         "loss, the target or data.eval has changed; counting begins again";
}

}  // namespace decent
