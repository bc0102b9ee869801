#include "decent/train/class_report.h"

#include <cmath>
#include <filesystem>

#include "decent/report/class_table.h"
#include "decent/runfolder/run_folder.h"
#include "decent/task/learned_in.h"

namespace decent {
namespace {

std::vector<std::string> names_or_numbers(const Task& task, std::size_t classes) {
  auto names = names_of_classes(task, *task.eval, classes);
  while (names.size() < classes) names.push_back(std::to_string(names.size()));
  return names;
}

}  // namespace

bool has_class_report(const Task& task) {
  if (!task.criterion.has_classes()) return false;
  const Field& target = task.eval->field(task.inputs.size());
  return target.shape.empty() || is_floating(target.dtype) ||
         !task.eval->samples->source().classes().empty();
}

std::vector<std::string> report_classes(const Task& task, const AveragedModel& model,
                                        const std::vector<double>& confusion) {
  constexpr std::size_t kMostLines = 40;
  if (confusion.empty()) return {};
  const auto classes = static_cast<std::size_t>(std::llround(std::sqrt(confusion.size())));
  const ConfusionMatrix matrix{.names = names_or_numbers(task, classes),
                               .counts = {confusion.begin(), confusion.end()}};
  const RunFolder folder(task.recipe.output);
  if (model.foreign.empty() && std::filesystem::exists(folder.metrics())) {
    write_class_scores(folder.class_scores(), matrix);
    write_confusion(folder.confusion(), matrix);
  }
  return class_lines(matrix, kMostLines);
}

}  // namespace decent
