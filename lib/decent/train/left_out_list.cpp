#include "decent/train/left_out_list.h"

#include <utility>
#include <vector>

#include "decent/comm/gather.h"
#include "decent/core/text.h"
#include "decent/report/data_files.h"

namespace decent {

void LeftOutList::add(World& world, const DataSet& data) {
  using Skipped = std::vector<std::pair<std::int64_t, std::string>>;
  Skipped own;
  for (const auto& sample : data.left_out->take_new()) own.push_back(sample);
  std::map<std::int64_t, std::string> all;
  for (const Skipped& samples : world.gather("left out of " + data.key, own)) {
    for (const auto& [sample, why] : samples) {
      if (known_[data.key].insert(sample).second) all[sample] = why;
    }
  }
  if (all.empty() || world.launch().rank != 0) return;
  if (!file_.empty()) append_skipped(file_, data.key, all);
  const auto& [sample, why] = *all.begin();
  const std::string listed = file_.empty() ? "" : " (listed in '" + file_.string() + "')";
  log_.warn(counted(std::ssize(all), "sample") + " of " + data.key + " cannot be read and " +
            (all.size() == 1 ? "is" : "are") + " left out" + listed + "; sample " +
            std::to_string(sample) + ": " + why);
}

}  // namespace decent
