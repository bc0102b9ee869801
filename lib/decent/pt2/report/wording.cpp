#include "decent/pt2/report/wording.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace decent::pt2 {

std::size_t most_names(Detail detail, std::size_t in_brief) {
  return detail == Detail::brief ? in_brief : std::numeric_limits<std::size_t>::max();
}

std::vector<std::string> counted_names(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  for (const auto& [name, count] : sorted) texts.push_back(name + " " + std::to_string(count));
  return texts;
}

}  // namespace decent::pt2
