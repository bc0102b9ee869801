#include "decent/train/data_warnings.h"

#include <utility>
#include <vector>

#include "decent/comm/gather.h"
#include "decent/core/text.h"
#include "decent/runfolder/data_files.h"

namespace decent {

void DataWarnings::tell(const Team& team, const Task& task) {
  for (const std::optional<DataSet>* data : {&task.train, &task.eval, &task.predict})
    if (*data && (*data)->left_out) tell_left_out(team, **data);
  if (task.criterion.may_doubt()) tell_doubts(team, task.doubts);
}

void DataWarnings::tell_doubts(const Team& team, const LossDoubts& doubts) {
  for (const auto& found : team.gather("doubts of the loss", doubts.found())) {
    for (const auto& [data, doubt] : found) {
      if (doubted_.insert(data).second) log_.warn(data + ": in a batch " + doubt);
    }
  }
}

void DataWarnings::tell_left_out(const Team& team, const DataSet& data) {
  using Skipped = std::vector<std::pair<std::int64_t, std::string>>;
  Skipped own;
  for (const auto& sample : data.left_out->take_new()) own.push_back(sample);
  std::map<std::int64_t, std::string> all;
  for (const Skipped& samples : team.gather("left out of " + data.key, own)) {
    for (const auto& [sample, why] : samples) {
      if (left_out_[data.key].insert(sample).second) all[sample] = why;
    }
  }
  if (all.empty() || !team.speaks()) return;
  if (!file_.empty()) append_skipped(file_, data.key, all);
  const auto& [sample, why] = *all.begin();
  const std::string listed = file_.empty() ? "" : " (listed in '" + file_.string() + "')";
  log_.warn(counted(std::ssize(all), "sample") + " of " + data.key + " cannot be read and " +
            (all.size() == 1 ? "is" : "are") + " left out" + listed + "; sample " +
            std::to_string(sample) + ": " + why);
}

}  // namespace decent
