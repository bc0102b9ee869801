// The variables of torch.distributed, which torchrun sets, or whoever starts workers by hand. They
// come first: torchrun may run inside a step of Slurm.

#include "decent/comm/launchers/launcher.h"

namespace decent {
namespace {

constexpr int kMaxDescriptor = 1 << 20;

bool started_by_torch_variables(const Variables& variables) {
  return variables("RANK") || variables("WORLD_SIZE");
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
  launch.agent_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const int attempt = variables.optional("TORCHELASTIC_RESTART_COUNT", 0, kMaxWorkers, 0);
  // The prefix that torch.distributed uses on torchrun's store.
  if (launch.agent_store) launch.store_prefix = "/worker/attempt_" + std::to_string(attempt);
}

}  // namespace

const Launcher kTorchVariables{"the launcher", started_by_torch_variables, read_torch_variables};

}  // namespace decent
