#include "decent/train/class_report.h"

#include <cmath>
#include <filesystem>

#include "decent/report/class_table.h"
#include "decent/report/data_files.h"
#include "decent/report/run_folder.h"

namespace decent {
namespace {

// Those of the run, or of the data; numbers where there are none.
std::vector<std::string> names_of_classes(const Task& task, std::size_t classes) {
  std::vector<std::string> names = read_classes(RunFolder(task.recipe.output).classes());
  if (names.empty()) names = written_classes(task.eval->samples->source().classes());
  while (names.size() < classes) names.push_back(std::to_string(names.size()));
  names.resize(classes);
  return names;
}

}  // namespace

bool has_class_report(const Task& task) {
  if (!task.criterion.has_classes()) return false;
  const Field& target = task.eval->field(task.inputs.size());
  return target.shape.empty() || target.dtype == DType::float32 ||
         !task.eval->samples->source().classes().empty();
}

std::vector<std::string> report_classes(const Task& task, const std::vector<double>& confusion) {
  constexpr std::size_t kMostLines = 40;
  if (confusion.empty()) return {};
  const auto classes = static_cast<std::size_t>(std::llround(std::sqrt(confusion.size())));
  const ConfusionMatrix matrix{.names = names_of_classes(task, classes),
                               .counts = {confusion.begin(), confusion.end()}};
  const RunFolder folder(task.recipe.output);
  if (std::filesystem::exists(folder.metrics())) {
    write_class_scores(folder.class_scores(), matrix);
    write_confusion(folder.confusion(), matrix);
  }
  return class_lines(matrix, kMostLines);
}

}  // namespace decent
