#pragma once
// Warnings of one worker about what all workers found while they read the data: samples that are
// left out (data.on_error: skip), and batches whose loss means nothing.

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "decent/comm/team.h"
#include "decent/runfolder/log.h"
#include "decent/task/task.h"

namespace decent {

class DataWarnings {
 public:
  /// `skipped`: see append_skipped; empty: no list is written. `log` must outlive this object.
  DataWarnings(std::filesystem::path skipped, Log& log) : file_(std::move(skipped)), log_(log) {}

  /// The worker that speaks warns about new findings of any worker, and lists the samples.
  /// Collective. Throws WriteError.
  void tell(const Team& team, const Task& task);

 private:
  void tell_left_out(const Team& team, const DataSet& data);
  void tell_doubts(const Team& team, const LossDoubts& doubts);

  std::filesystem::path file_;
  Log& log_;
  std::map<std::string, std::set<std::int64_t>> left_out_;  // samples of each data set
  std::set<std::string> doubted_;                           // data sets
};

}  // namespace decent
