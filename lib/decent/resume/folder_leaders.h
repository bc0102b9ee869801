#pragma once
// Which workers share an output folder, and which of them writes what the folder has once.

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "decent/comm/team.h"

namespace decent {

/// In each output folder the lowest rank that shares it leads.
class FolderLeaders {
 public:
  /// One worker alone.
  FolderLeaders() = default;
  /// `leaders`: by rank, the lowest rank that shares its folder.
  explicit FolderLeaders(std::vector<int> leaders) : leaders_(std::move(leaders)) {}

  int of(int rank) const { return leaders_.at(static_cast<std::size_t>(rank)); }
  bool leads(int rank) const { return of(rank) == rank; }
  bool leads(const Team& team) const { return leads(team.rank()); }
  /// Whether the worker shares the folder of the worker that speaks, which writes the run's files.
  bool shares_with_speaker(int rank) const { return of(rank) == of(Team::kSpeaker); }
  /// One rank for each folder.
  std::set<int> all() const { return {leaders_.begin(), leaders_.end()}; }
  bool has_several_folders() const { return all().size() > 1; }

  /// The leaders once these workers are lost: in each folder the lowest rank that is left. Nothing
  /// changes in a folder of which all workers are lost.
  FolderLeaders without(const std::set<int>& lost) const;

 private:
  std::vector<int> leaders_ = {0};
};

}  // namespace decent
