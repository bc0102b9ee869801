#pragma once
// `log.track`: the command decent-track, which sends the figures of a run to a tracking service
// while it trains. It is a program of its own, in Python: training neither waits for it nor fails
// with it.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "decent/runfolder/log.h"

namespace decent {

class Tracker {
 public:
  /// Starts `decent-track <folder> --to <service>` beside this process. It is looked for on the
  /// PATH, and in the Python environment that this program belongs to. If it cannot be started, the
  /// log gets a warning.
  Tracker(std::string service, const std::filesystem::path& folder, Log& log);

  /// Waits until it has sent everything, but no longer than `most`; it goes on by itself then.
  /// Warns if it failed.
  void wait(std::chrono::seconds most = std::chrono::seconds(10));

 private:
  std::string service_;
  Log& log_;
  pid_t process_ = 0;  // 0: it is not running
};

}  // namespace decent
