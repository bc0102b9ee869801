#pragma once
// What a run tells of the samples that it leaves out (data.on_error: skip).

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "decent/comm/world.h"
#include "decent/report/log.h"
#include "decent/task/sources.h"

namespace decent {

class LeftOutList {
 public:
  /// `file`: see append_skipped; empty: none is written. `log` must outlive this object.
  LeftOutList(std::filesystem::path file, Log& log) : file_(std::move(file)), log_(log) {}

  /// Rank 0 warns of what any worker has left out of `data` for the first time since this list was
  /// made, and adds it to the file. `data` leaves out. Collective. Throws WriteError.
  void add(World& world, const DataSet& data);

 private:
  std::filesystem::path file_;
  Log& log_;
  std::map<std::string, std::set<std::int64_t>> known_;  // of each data set
};

}  // namespace decent
