#pragma once
// What the launcher (torchrun, Slurm through a wrapper, or none) tells a worker through environment
// variables.

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace decent {

/// One worker's place in the run. Without a launcher: the only worker.
struct Launch {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string master_addr;  // where the store is; empty for a single worker
  int master_port = 0;
  bool agent_store = false;  // torchrun hosts the store (TORCHELASTIC_USE_AGENT_STORE)
  bool torchrun = false;     // started this worker, and waits 30 s for it after a signal
  std::string store_prefix;  // keys of this attempt, so that a restart does not meet the last one's
  std::vector<std::string> interfaces;  // GLOO_SOCKET_IFNAME, separated by commas

  bool hosts_store() const { return rank == 0 && !agent_store; }
  bool one_machine() const { return local_world_size == world_size; }
};

using Variables = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
/// TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_RUN_ID,
/// GLOO_SOCKET_IFNAME. With neither RANK nor WORLD_SIZE: a single worker. Throws UserError naming
/// the variable that is missing or makes no sense.
Launch read_launch(const Variables& variables);
Launch read_launch();  // the process environment

}  // namespace decent
