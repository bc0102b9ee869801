#pragma once
// The history of a run: metrics.jsonl and run.json. Only the worker that speaks writes them. Where
// machines have folders of their own, the leader of each other folder keeps a copy up to the last
// checkpoint, so that a run goes on with its whole history whichever machine speaks then.

#include <cstdint>
#include <filesystem>
#include <string>

#include "decent/comm/team.h"
#include "decent/resume/folder_leaders.h"
#include "decent/runfolder/run_folder.h"

namespace decent {

/// Whole lines of a file of metrics.
struct AddedLines {
  std::uint64_t begin = 0;  // where they stand in the file, in bytes
  std::string text;
};

/// The lines from `begin` on. An incomplete last line is still being written and not among them.
AddedLines lines_from(const std::filesystem::path& metrics, std::uint64_t begin);

/// Puts lines where they stand in the file that they are from, and makes them durable; what stands
/// there or behind goes. Throws WriteError.
void put_lines(const std::filesystem::path& metrics, const AddedLines& lines);

/// Gives all folders the same history: the longest one among workers of whom `may_have` is true, or
/// that of the worker that speaks if there is none. All files have been cut to the step after which
/// the run goes on. Collective. Throws SharedError.
void share_history(const Team& team, const FolderLeaders& leaders, const RunFolder& folder,
                   bool may_have);

/// Gives the run.json of the worker that speaks to all other folders. Collective. Throws
/// SharedError.
void share_run_file(const Team& team, const FolderLeaders& leaders, const RunFolder& folder);

}  // namespace decent
