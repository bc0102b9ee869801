// The variables of torch.distributed, which torchrun sets, or whoever starts workers by hand. They
// come first: torchrun may run inside a step of Slurm.

#include <cstdlib>

#include "decent/comm/control/launcher_watch.h"
#include "decent/comm/launchers/launcher.h"
#include "decent/core/host.h"

namespace decent {
namespace {

constexpr int kMaxDescriptor = 1 << 20;

bool started_by_torch_variables(const Variables& variables) {
  return variables("RANK") || variables("WORLD_SIZE");
}

// torchrun's agents host the store, which outlives restarts. Their number of restarts
// (TORCHELASTIC_RESTART_COUNT) tells no starts apart: every agent counts its own.
void read_agent_store(const LauncherVariables& variables, Launch& launch) {
  launch.agent_store = true;
  launch.script = started_process(launch.launcher_mark, variables.proc());
  if (launch.script.empty()) launch.script = random_name();  // every process its own
  const auto number = [&](const char* name) { return std::atoi(variables.text(name).c_str()); };
  // With this variable of theirs, agents leave no sign by which World could find out.
  const bool unknown = variables.text("TORCH_ELASTIC_WORKER_IDENTICAL") == "1";
  if (number("TORCHELASTIC_MAX_RESTARTS") > 0 && number("GROUP_WORLD_SIZE") > 1 && !unknown)
    launch.elastic_run = variables.text("TORCHELASTIC_RUN_ID");
}

void read_torch_variables(const LauncherVariables& variables, Launch& launch) {
  launch.supervisor = variables.optional(kSupervisorVariable, 0, kMaxDescriptor, -1);
  launch.store_listener = variables.optional(kStoreListenerVariable, 0, kMaxDescriptor, -1);
  if (launch.supervisor >= 0) launch.launcher = "decent-train --workers";
  launch.torchrun = variables.has("TORCHELASTIC_RUN_ID");
  if (launch.torchrun) {
    launch.launcher = "torchrun";
    launch.launcher_mark = "TORCHELASTIC_RUN_ID";
  }
  variables.world_size("WORLD_SIZE", "RANK -u WORLD_SIZE", launch);
  launch.rank = variables.required("RANK", 0, launch.world_size - 1);
  if (launch.world_size == 1) return;
  variables.read_place("LOCAL_RANK", "LOCAL_WORLD_SIZE", launch);
  launch.master_addr = variables.required_text("MASTER_ADDR");
  launch.master_port = variables.required("MASTER_PORT", 1, 65535);
  if (variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True") read_agent_store(variables, launch);
}

}  // namespace

const Launcher kTorchVariables{"the launcher", started_by_torch_variables, read_torch_variables};

}  // namespace decent
