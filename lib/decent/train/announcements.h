#pragma once
// The first lines of a run.

#include <cstdint>
#include <string>
#include <vector>

#include "decent/checkpoint/facts.h"
#include "decent/report/progress.h"
#include "decent/runfolder/log.h"
#include "decent/train/plan.h"

namespace decent {

struct RunSize {
  int workers = 1;
  std::int64_t parameters = 0;  // number of trained elements
  std::int64_t buckets = 0;
};

/// What the user should know about a run before it begins; --dry-run shows the same.
struct Notices {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};
Notices notices_of(const Run& run, int workers);

/// How the files of the data are read, each line once.
std::vector<std::string> notes_of_data(const Task& task);

/// Warnings about parts of the model that ignore train and eval mode: an evaluation then computes
/// what training computes, or gives another result each time.
std::vector<std::string> mode_warnings(const Task& task);

/// The notices about the model and its data, which an evaluation gives, too.
Notices notices_of_model(const Task& task, const Trial& trial);

void announce(Log& log, const Notices& notices);

/// A line for the user if a run resumes with a topology other than its recipe's, or with its
/// recipe's one again. `before`: the facts of its checkpoint. Empty if neither is so.
std::string line_about_topology(const Run& run, int workers, const Facts& before);

/// What a run is about to do, for its start lines and --dry-run.
RunFacts run_facts(const Run& run, const RunSize& size);

/// Logs what will be trained, how, and where the output goes, with notes and warnings. Returns what
/// run.json keeps of it.
StartEntry announce_run(Log& log, const Run& run, const RunSize& size);

/// Adds the start to run.json, with the run's facts. Throws WriteError.
void write_start(Log& log, const Run& run, StartEntry start);

}  // namespace decent
