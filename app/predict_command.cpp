#include "predict_command.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "decent/comm/gather.h"
#include "decent/core/quote.h"
#include "decent/core/text.h"
#include "decent/report/predictions/formats.h"
#include "decent/task/class_names.h"
#include "decent/task/predicted.h"
#include "decent/train/predictions/predictor.h"

namespace decent {
namespace {

// "0 3, 1 12": how many samples of each class; empty if there are no classes, or many.
std::string classes_text(const PredictionCounts& counts, const std::vector<std::string>& names) {
  constexpr std::size_t kMostShown = 20;
  if (counts.of_classes.size() > kMostShown) return "";
  std::vector<std::string> parts;
  for (const auto& [number, count] : counts.of_classes) {
    const auto place = static_cast<std::size_t>(number);
    const std::string name =
        place < names.size() ? in_quotes(names[place]) : std::to_string(number);
    parts.push_back(std::to_string(count) + " of class " + name);
  }
  return join(parts);
}

}  // namespace

void write_predictions(Program& program, const Team& team, TriedTask& tried,
                       DataWarnings& warnings) {
  Task& task = tried.task;
  const std::filesystem::path path = program.flags.predict_file.value();
  std::vector<std::string> names;
  std::unique_ptr<PredictionFile> file;
  team.agree("prediction file", [&] {
    if (!team.speaks()) return;
    names = names_of_classes(task, *task.predict, static_cast<std::size_t>(tried.trial.classes));
    file = find_prediction_format(path)->open(path, names);
  });
  const bool probabilities = task.model->gives_logits() || gives_probabilities(task, tried.trial);
  // Rank 0 decides: workers that also evaluated have tried other batches.
  const bool agreed = team.gather("gives probabilities", probabilities).front();
  const PredictionCounts counts = Predictor(task, team, agreed).run(file.get());
  warnings.tell(team, task);
  program.log->info("predicted " + counted(counts.samples, "sample") + " of data.predict: '" +
                    path.string() + "'");
  if (counts.not_finite > 0) {
    program.log->warn("the model's outputs for " + counted(counts.not_finite, "sample") +
                      " are not finite (the first is row " +
                      std::to_string(counts.first_not_finite) +
                      "): a class or a probability of such a sample means nothing");
  }
  const std::string classes = classes_text(counts, names);
  if (!classes.empty()) program.log->info(classes);
}

}  // namespace decent
