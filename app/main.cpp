// decent-train: reads the command line and the recipe once, connects the workers, and runs the
// command. ending.h ends the program.

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "allocator.h"
#include "commands.h"
#include "decent/comm/c10d_variables.h"
#include "decent/comm/control/control.h"
#include "decent/comm/control/launcher_watch.h"
#include "decent/comm/gather.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/host.h"
#include "decent/core/version.h"
#include "decent/task/device.h"
#include "decent/train/recipe_names.h"
#include "ending.h"

namespace decent {
namespace {

// SIGTERM, SIGINT, SIGUSR1 and, unless it is ignored (nohup), SIGHUP ask a run to stop. A signal
// handler has no other access to its object.
std::atomic<Control*> receiver = nullptr;

void handle(int signal) {
  const int saved = errno;
  if (Control* control = receiver.load()) control->request_stop(signal);
  errno = saved;
}

// Whether the signal is ignored: by nohup, or by the supervisor, which handles terminal signals.
bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// From now on these signals are requests to `control`, which must live until the process ends.
void stop_on_signals(Control& control) {
  receiver = &control;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;  // reads and writes under way continue
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaction(signal, &action, nullptr);
  if (!is_ignored(SIGHUP)) ::sigaction(SIGHUP, &action, nullptr);
}

// This worker watches the supervisor's end itself from now on (launcher_watch.h). Until then the
// kernel ends it together with the supervisor.
void watches_supervisor(const Launch& launch) {
  if (launch.supervisor >= 0) ::prctl(PR_SET_PDEATHSIG, 0);
}

/// How long a peer may be silent. It is needed even if the recipe cannot be read, since peers may
/// be missing before that error can be shared.
std::chrono::duration<double> timeout_of(const Deferred<Recipe>& recipe) {
  if (const Recipe* read = recipe.get_if()) {
    return std::chrono::duration<double>(read->parallel.timeout_s);
  }
  return WorldOptions{}.timeout;
}

void check_same_command(Program& program) {
  const std::vector<std::string> commands =
      program.world->gather("command", command_of(program.flags));
  for (std::size_t rank = 1; rank < commands.size(); ++rank) {
    if (commands[rank] == commands[0]) continue;
    throw SharedError(ExitCode::user_error, "rank " + std::to_string(rank) + " was started with " +
                                                commands[rank] + ", rank 0 with " + commands[0] +
                                                ": all workers need the same flags");
  }
}

void show_help(Program& program) {
  if (program.main_worker()) std::fputs(help_text().c_str(), stdout);
}

void show_version(Program& program) {
  if (program.main_worker()) std::printf("decent-train %s\n", version_text().c_str());
}

void train_until_stopped(Program& program) {
  stop_on_signals(program.world->control());
  // From now on a signal makes this worker save and stop. Until then there is nothing to save, and
  // the supervisor, if there is one, ends its workers at once.
  tell_supervisor(program.launch, kSavesOnSignals);
  program.world->control().on_launcher_end(LauncherEnd::stop);
  train(program);
}

struct Command {
  bool (*asked)(const Flags& flags);
  void (*run)(Program& program);
};

// The first that the flags ask for. --workers and --report are not among them: they need no world.
constexpr Command kCommands[] = {
    {[](const Flags& flags) { return flags.help; }, show_help},
    {[](const Flags& flags) { return flags.version; }, show_version},
    {[](const Flags& flags) { return flags.print_config; }, print_config},
    {[](const Flags& flags) { return flags.dry_run; }, dry_run},
    {[](const Flags& flags) { return flags.reads_checkpoint(); }, use_checkpoint},
    {[](const Flags&) { return true; }, train_until_stopped},
};

void run_command(Program& program) {
  std::ranges::find_if(kCommands, [&](const Command& each) {
    return each.asked(program.flags);
  })->run(program);
}

void run(Program& program, int argc, char** argv) {
  limit_threads();
  program.launch = read_launch();
  const Deferred<Flags> flags([&] { return parse_flags(argc, argv); });
  if (const Flags* given = flags.get_if(); given != nullptr && shows_runs(*given))
    return show_runs(program.launch, *given);
  program.recipe = Deferred<Recipe>(
      [&] { return load_recipe(flags.get().config, flags.get().overrides, recipe_names()); });
  if (const Flags* given = flags.get_if(); given != nullptr && starts_workers(*given))
    end_after_workers(start_workers(program, *given));
  program.world = std::make_unique<World>(
      program.launch,
      WorldOptions{
          .timeout = timeout_of(program.recipe),
          .timeout_setting = "parallel.timeout_s",
          .explain = [](const std::exception& error) { return outcome_of(error); },
          .on_failure = [&program](const Failure& failure,
                                   bool reports) { end_after_failure(program, failure, reports); },
          .launcher = watch_launcher(program.launch)});
  program.launch = program.world->launch();  // now with the workers of this machine
  program.world->agree("flags", [&] { program.flags = flags.get(); });
  check_same_command(program);
  program.session = program.world->gather("session", random_name()).front();
  program.world->control().on_launcher_end(LauncherEnd::fail);
  watches_supervisor(program.launch);
  run_command(program);
  program.world->control().leave();
}

}  // namespace
}  // namespace decent

int main(int argc, char** argv) {
  decent::keep_freed_memory();
  decent::silence_c10d_warnings();
  // If a peer or the store closes its connection, the write fails (exit 3) and this process is not
  // killed. Python does the same, so that all ways to start the program behave alike.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ,
              SIG_IGN);  // a write beyond `ulimit -f` fails with a message, as on a full disk
  {
    decent::Program program;
    try {
      decent::run(program, argc, argv);
    } catch (...) {
      decent::end_with_error(program);
    }
  }
  decent::end_well();
}
