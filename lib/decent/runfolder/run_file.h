#pragma once
// run.json: what a run states about itself at each of its starts, for pages and other programs.
//
//     {"format": 1,
//      "starts": [{"time": "2026-01-02 03:04:05", "program": "0.1.0 (build ..)", "run": "..",
//                  "step": 0, "workers": 2, "lines": [["workers", "2, 1 thread each, .."], ..],
//                  "phases": [[[0, 1]]], "changed": []},
//                 {.., "step": 500, "workers": 4, "changed": [["optimizer.lr", "0.001", "0.01"]]}],
//      "facts": {"optimizer.lr": "0.01", "the device": "cpu", ..},      of the last start
//      "defaults": {"optimizer.lr": "0.001", ..}}   of all keys, in the version of the last start

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "decent/checkpoint/facts.h"

namespace decent {

/// Names and texts, each name once.
using Texts = std::vector<std::pair<std::string, std::string>>;

/// A fact that was different at the start before.
struct ChangedFact {
  std::string topic;
  std::string was;  // empty: the topic was not there
  std::string is;   // empty: the topic is not there any more
  bool operator==(const ChangedFact&) const = default;
};

/// One start of a run.
struct StartEntry {
  std::string time = {};     // local, "2026-01-02 03:04:05"
  std::string program = {};  // version and build
  std::string run = {};   // the same for all starts of a run, and for no other run; empty: unknown
  std::int64_t step = 0;  // after which it begins
  int workers = 1;
  Texts lines = {};  // what the run says of itself: {"device", "cpu, gloo"}, {"model", ..}
  /// By phase and edge: the ranks that average their weights. Empty if weights are not averaged.
  std::vector<std::vector<std::vector<int>>> phases = {};
  std::vector<ChangedFact> changed = {};  // of the start before; made by add_start()
};

struct RunFile {
  Texts defaults = {};
  Facts facts = {};
  std::vector<StartEntry> starts = {};
};

/// The starts that the file keeps: the last ones.
inline constexpr std::size_t kMostStarts = 1000;

/// Empty if there is no such file. Throws UserError if it is damaged.
RunFile read_run_file(const std::filesystem::path& file);

/// Adds a start to those in the file, whose facts tell what has changed, or begins the file anew if
/// the run does not go on (`resumes` is false). A damaged file is begun anew, too; returns why, or
/// an empty text. Throws WriteError.
std::string add_start(const std::filesystem::path& file, StartEntry start, bool resumes,
                      const Facts& facts, const Texts& defaults);

}  // namespace decent
