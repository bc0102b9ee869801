#include "decent/resume/folder_leaders.h"

#include <map>

namespace decent {

FolderLeaders FolderLeaders::without(const std::set<int>& lost) const {
  std::map<int, int> next;  // by the leader so far
  for (int rank = 0; rank < static_cast<int>(leaders_.size()); ++rank) {
    if (!lost.contains(rank)) next.emplace(of(rank), rank);
  }
  FolderLeaders left = *this;
  for (int& leader : left.leaders_) {
    if (const auto found = next.find(leader); found != next.end()) leader = found->second;
  }
  return left;
}

}  // namespace decent
