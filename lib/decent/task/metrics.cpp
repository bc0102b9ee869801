#include "decent/task/metrics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "decent/config/choices.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

std::vector<std::string> metrics_for(const ModelRecipe& model) {
  const Criterion criterion(model);
  if (criterion.has_classes()) return {"loss", "accuracy", "top5", "perplexity"};
  if (criterion.classifies()) return {"loss", "accuracy"};
  if (criterion.regresses()) return {"loss", "mse", "mae", "r2"};
  return {"loss", "perplexity"};
}

double value_of(const std::string& metric, const EvaluationSums& sums) {
  if (metric == "accuracy") return sums.correct / sums.labels;
  if (metric == "top5") return sums.correct5 / sums.labels;
  if (metric == "perplexity") return std::exp(sums.loss / sums.elements);
  if (metric == "mse") return sums.squared_error / sums.numbers;
  if (metric == "mae") return sums.absolute_error / sums.numbers;
  if (metric == "r2") return 1 - sums.squared_error / sums.target_squares;
  throw std::logic_error("a metric without a value: " + metric);
}

}  // namespace

std::vector<std::string> metrics_of(const Recipe& recipe) {
  const std::vector<std::string> valid = metrics_for(recipe.model);
  if (!recipe.eval.metrics) {
    const bool classifies = Criterion(recipe.model).classifies();
    return classifies ? std::vector<std::string>{"accuracy"} : std::vector<std::string>{};
  }
  std::vector<std::string> metrics;
  for (const std::string& name : *recipe.eval.metrics) {
    if (std::find(valid.begin(), valid.end(), name) == valid.end()) {
      throw UserError("eval.metrics: the loss " + std::string(name_of(recipe.model.loss)) +
                      " has no " + name + "; it has " + join(valid));
    }
    const bool known = std::find(metrics.begin(), metrics.end(), name) != metrics.end();
    if (name != "loss" && !known) metrics.push_back(name);
  }
  return metrics;
}

std::vector<Score> scores_of(const std::vector<std::string>& metrics, const EvaluationSums& sums) {
  std::vector<Score> scores;
  for (const std::string& name : metrics) scores.push_back({name, value_of(name, sums)});
  return scores;
}

}  // namespace decent
