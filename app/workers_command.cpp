// --workers: this process starts the workers and waits for them.

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>

#include "commands.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/runfolder/output_lock.h"
#include "decent/runfolder/run_folder.h"
#include "decent/supervisor/supervisor.h"

namespace decent {
namespace {

// The system will show the workers under this name, unlike under /proc/self/exe.
std::string own_program() {
  std::error_code unknown;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) return path;
  return reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
}

// The time at which each checkpoint in the folder was completed.
using Saved = std::map<std::filesystem::path, std::filesystem::file_time_type>;

Saved saved_in(const std::filesystem::path& checkpoints) {
  Saved saved;
  std::error_code absent;
  for (const auto& folder : std::filesystem::directory_iterator(checkpoints, absent)) {
    const auto time = std::filesystem::last_write_time(folder.path() / "manifest.json", absent);
    if (!absent) saved[folder.path()] = time;
  }
  return saved;
}

// After a restart the run resumes from its newest checkpoint. If it has saved none yet and began at
// a checkpoint that the user named, it begins there again.
Flags restarted(Flags flags, bool has_saved) {
  if (has_saved || !flags.resume) flags.resume = "auto";
  return flags;
}

// On a terminal, the line replaces the workers' progress bar.
void say(const std::string& line) {
  const char* start = ::isatty(STDERR_FILENO) != 0 ? "\r\x1b[K" : "";
  std::fprintf(stderr, "%sdecent-train: %s\n", start, line.c_str());
}

// Every process that the launcher started finds this; rank 0 reports it.
void check_no_other_launcher(const Launch& launch) {
  if (launch.world_size == 1 && !launch.torchrun) return;
  const std::string by = launch.launcher.empty() ? "a launcher" : launch.launcher;
  throw SharedError(ExitCode::user_error,
                    "--workers starts the workers by itself, but this process was started by " +
                        by + ", for " + counted(launch.world_size, "worker") +
                        " in all. Leave out one of the two");
}

// The workers check the folder again. But after a restart they resume the run that they find there,
// which must be the run of this command, not an older one.
void check_output(const Flags& flags, const Recipe& recipe) {
  if (flags.resume || flags.dry_run || flags.reads_checkpoint()) return;
  check_not_held(recipe.output);
  RunFolder(recipe.output).check_free();
}

// The workers that are left after a loss may take so long to save.
std::chrono::duration<double> patience_of(const Recipe& recipe) {
  constexpr double kToEnd = 10;
  constexpr double kWithoutFarewell = 15;
  const double farewell_s = recipe.parallel.farewell_s;
  return std::chrono::duration<double>(farewell_s > 0 ? farewell_s + kToEnd : kWithoutFarewell);
}

}  // namespace

bool starts_workers(const Flags& flags) {
  return flags.workers > 0 && !flags.help && !flags.version && !flags.print_config;
}

int start_workers(const Program& program, const Flags& flags) {
  check_no_other_launcher(program.launch);
  const Recipe& recipe = program.recipe.get();
  check_output(flags, recipe);
  const auto checkpoints = RunFolder(recipe.output).checkpoints();
  const Saved before = saved_in(checkpoints);
  const std::string file = own_program();
  return supervise({.workers = flags.workers,
                    .max_restarts = flags.max_restarts,
                    .min_workers = flags.min_workers,
                    .patience = patience_of(recipe),
                    .command =
                        [&](int restarts) {
                          if (restarts == 0) return WorkerCommand{file, arguments_of(flags)};
                          const bool has_saved = saved_in(checkpoints) != before;
                          return WorkerCommand{file, arguments_of(restarted(flags, has_saved))};
                        },
                    .say = say});
}

}  // namespace decent
