#pragma once
// What a run does because of its evaluations: it lowers the learning rate, or ends. Evaluations are
// the same on all workers, so that all of them do so after the same step.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "decent/checkpoint/manifest.h"
#include "decent/config/recipe.h"
#include "decent/optim/plateau.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/train/evaluation/early_stop.h"

namespace decent {

class EvaluationRules {
 public:
  /// No rules.
  EvaluationRules() = default;
  /// `plateau` may be null.
  EvaluationRules(const Recipe& recipe, std::shared_ptr<Plateau> plateau);

  /// Takes an evaluation. An evaluation before the first update decides nothing.
  void saw(const EvalMetrics& metrics);

  /// Whether the run ends here, and why.
  bool stops() const { return stop_ && stop_->stops(); }
  std::string stop_text() const { return stop_->text(); }
  /// What the last evaluation has changed, for the log; empty if it has changed nothing.
  std::string take_news();

  /// The state that checkpoints keep.
  Numbers state() const;
  /// Restores the state from a checkpoint, in a run with the facts `now`. A best value is compared
  /// only with values of the same measure: if the metric, loss, target or data.eval has changed, a
  /// rule begins again, at the learning rate that was reached. Returns a warning that names the
  /// rules which begin again; nothing if none does. A checkpoint without the state of a rule was
  /// saved before the recipe had the rule.
  std::optional<std::string> restore(const Manifest& saved, const Facts& now);

 private:
  // Return false if there is a state that the rule cannot go on from.
  bool restore_stop(const Numbers& numbers, bool alike);
  bool restore_plateau(const Numbers& numbers, bool alike);
  std::string stop_name() const;
  std::string plateau_name() const;

  std::optional<EarlyStop> stop_;
  std::shared_ptr<Plateau> plateau_;
  std::string plateau_metric_;
  std::string news_;
};

}  // namespace decent
