#pragma once
// The first lines of a run.

#include <cstdint>
#include <string>
#include <vector>

#include "decent/report/log.h"
#include "decent/train/run.h"

namespace decent {

struct RunSize {
  int workers = 1;
  std::int64_t parameters = 0;  // elements that are trained
  std::int64_t buckets = 0;
};

/// What the user should know of a run before it begins: the same for --dry-run.
struct Notices {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};
Notices notices_of(const Run& run, int workers);

/// How the files of the data are read, each line once.
std::vector<std::string> notes_of_data(const Task& task);

/// What of the model does not follow train and eval mode: its evaluations are what its file
/// computes in training, or come out otherwise each time.
std::vector<std::string> mode_warnings(const Task& task);

/// Those on the model and the data that it is given, which an evaluation says, too.
Notices notices_of_model(const Task& task, const Trial& trial);

void announce(Log& log, const Notices& notices);

/// What will be trained, how, and where it goes; notes and warnings on it.
void announce_run(Log& log, const Run& run, const RunSize& size);

}  // namespace decent
