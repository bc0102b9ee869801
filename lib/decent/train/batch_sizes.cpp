#include "decent/train/batch_sizes.h"

#include <algorithm>
#include <set>
#include <string>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

const std::int64_t* find_size(const NamedCounts& sizes, const std::string& name) {
  const auto found =
      std::ranges::find_if(sizes, [&](const auto& entry) { return entry.first == name; });
  return found == sizes.end() ? nullptr : &found->second;
}

// Empty if the workers have not met.
std::string host_of(const Member& member, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return index < member.hosts.size() ? member.hosts[index] : "";
}

std::int64_t size_on(const BatchSizeRecipe& recipe, int rank, const std::string& host) {
  if (const std::int64_t* size = find_size(recipe.ranks, std::to_string(rank))) return *size;
  if (const std::int64_t* size = find_size(recipe.hosts, host)) return *size;
  return recipe.usual;
}

void check_names(const BatchSizeRecipe& recipe, const Member& member) {
  constexpr std::size_t kMaxNames = 8;
  std::set<std::string> ranks;
  std::set<std::string> hosts;
  for (const int rank : member.workers.ranks) {
    ranks.insert(std::to_string(rank));
    hosts.insert(host_of(member, rank));
  }
  for (const auto& [host, size] : recipe.hosts) {
    if (hosts.contains(host)) continue;
    throw UserError("data.batch_size.hosts: no worker runs on " + in_quotes(host) +
                    "; the hosts of this run are " +
                    some_of(std::vector<std::string>(hosts.begin(), hosts.end()), kMaxNames));
  }
  for (const auto& [rank, size] : recipe.ranks) {
    if (ranks.contains(rank)) continue;
    throw UserError("data.batch_size.ranks: there is no rank " + rank + " among " +
                    counted(member.size(), "worker") + ", which are counted from 0");
  }
}

}  // namespace

std::vector<std::int64_t> batch_sizes(const BatchSizeRecipe& recipe, const Member& member,
                                      bool resumes) {
  if (!resumes) check_names(recipe, member);
  std::vector<std::int64_t> sizes;
  for (const int rank : member.workers.ranks)
    sizes.push_back(size_on(recipe, rank, host_of(member, rank)));
  return sizes;
}

}  // namespace decent
