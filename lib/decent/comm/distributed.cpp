#include "decent/comm/distributed.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "decent/comm/c10d_variables.h"
#include "decent/comm/control/launcher_watch.h"

namespace decent {
namespace {

// Not exit(): the thread that trains is still at work.
void end_process(const Failure& failure, bool reports) {
  std::fflush(stdout);
  if (reports) std::fprintf(stderr, "error: %s\n", failure.message.c_str());
  std::_Exit(static_cast<int>(failure.code));
}

WorldOptions world_options(const Launch& launch, const DistributedOptions& options) {
  return {.timeout = options.timeout,
          .timeout_setting = "DistributedOptions::timeout",
          .on_failure = options.on_failure ? options.on_failure : end_process,
          .launcher = watch_launcher(launch)};
}

// All workers learn if one of them cannot have the device that was asked for.
DeviceChoice choose_together(World& world, const DistributedOptions& options) {
  DeviceChoice choice;
  world.compare_gpus(options.device != DeviceRequest::cpu);
  world.agree("device",
              [&] { choice = choose_device(options.device, options.backend, world.launch()); });
  return choice;
}

}  // namespace

Distributed::Distributed(const Launch& launch, const DistributedOptions& options)
    : world_(launch, world_options(launch, options)),
      choice_(choose_together(world_, options)),
      communicator_(world_.communicator(choice_)),
      exceptions_(std::uncaught_exceptions()) {
  world_.control().report(Operation::running);
}

// An operation may be complete here and still be under way to a peer, and destroying the group
// would cut it off.
void leave_together(Communicator& communicator, Control& control) {
  try {
    communicator.drain([&] { return control.failed(); });
    control.gather("end", "");
  } catch (const std::exception&) {  // the run's, which on_failure was told, or the GPU's
  }
  control.leave();
}

Distributed::~Distributed() {
  if (std::uncaught_exceptions() == exceptions_) leave_together(*communicator_, world_.control());
}

Distributed initialize_distributed(const DistributedOptions& options) {
  silence_c10d_warnings();
  // A peer that closes its connection is an error of the write, not the end of this process.
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
  return Distributed(read_launch(), options);
}

}  // namespace decent
