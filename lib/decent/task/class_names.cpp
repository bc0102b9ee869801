#include "decent/task/class_names.h"

#include <algorithm>

#include "decent/core/error.h"
#include "decent/core/quote.h"
#include "decent/task/learned_in.h"

namespace decent {

std::vector<std::string> names_of_classes(const Task& task, const DataSet& data,
                                          std::size_t count) {
  std::vector<std::string> names = task.learned.classes;
  // Needed for a checkpoint of an older version that is not in its run's folder.
  if (names.empty()) names = learned_in(RunFolder(task.recipe.output)).classes;
  names = written_names(names.empty() ? data.samples->source().classes() : names);
  if (names.empty()) return names;
  while (names.size() < count) names.push_back(std::to_string(names.size()));
  names.resize(count);
  return names;
}

void check_classes(const DataSet& eval, const SourceRecipe& recipe, const LearnedData& learned) {
  const std::vector<std::string> own = written_names(eval.samples->source().classes());
  const std::vector<std::string> names = written_names(learned.classes);
  const auto [first, other] = std::mismatch(names.begin(), names.end(), own.begin(), own.end());
  if (names.empty() || other == own.end()) return;
  const auto& keys = recipe.options.all();
  const bool has_reference = std::any_of(keys.begin(), keys.end(),
                                         [](const auto& key) { return key.first == "reference"; });
  throw UserError("data.eval: class " + std::to_string(other - own.begin()) + " is " +
                  in_quotes(*other) + ", in " + learned.where + " " +
                  (first == names.end() ? "there is none" : "it is " + in_quotes(*first)) +
                  (has_reference ? "; `reference: <path of data.train>` takes the classes of that"
                                 : "; both must have the same classes"));
}

}  // namespace decent
