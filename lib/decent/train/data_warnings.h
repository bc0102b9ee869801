#pragma once
// What the workers found in the data while they read it, told by rank 0: samples that are left out
// (data.on_error: skip), and batches whose loss means nothing.

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "decent/comm/world.h"
#include "decent/report/log.h"
#include "decent/task/task.h"

namespace decent {

class DataWarnings {
 public:
  /// `skipped`: see append_skipped; empty: no list is written. `log` must outlive this object.
  DataWarnings(std::filesystem::path skipped, Log& log) : file_(std::move(skipped)), log_(log) {}

  /// Rank 0 warns of what any worker has found for the first time since this was made, and lists
  /// the samples. Collective. Throws WriteError.
  void tell(World& world, const Task& task);

 private:
  void tell_left_out(World& world, const DataSet& data);
  void tell_doubts(World& world, const LossDoubts& doubts);

  std::filesystem::path file_;
  Log& log_;
  std::map<std::string, std::set<std::int64_t>> left_out_;  // samples of each data set
  std::set<std::string> doubted_;                           // data sets
};

}  // namespace decent
