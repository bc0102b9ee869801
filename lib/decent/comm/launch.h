#pragma once
// The environment variables by which a launcher (torchrun, Slurm, mpirun, or none) tells a worker
// its place in the run.

#include <filesystem>
#include <string>
#include <vector>

#include "decent/core/environment.h"
#include "decent/core/membership.h"

namespace decent {

/// One worker's place in the run. The defaults are those of a single worker without a launcher.
struct Launch {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  bool own_gpus = false;           // this worker sees GPUs that no other worker sees
  bool parts_of_gpus = false;      // some workers' own GPUs are parts of one GPU (MIG); set on all
  bool knows_machine = true;       // else local_rank and local_world_size are set when workers meet
  std::vector<int> machines = {};  // see Member
  std::vector<std::string> hosts = {};  // see Member
  std::string master_addr;              // where the store is; empty for a single worker
  int master_port = 0;
  bool agent_store = false;  // torchrun hosts the store (TORCHELASTIC_USE_AGENT_STORE)
  bool torchrun = false;     // torchrun started this worker; it kills it 30 s after a signal
  std::string store_prefix;  // of this job's keys, where others may use the same store
  std::string script = {};   // names the process that the launcher started; see started_process
  // torchrun's name of the run, if its agents start workers of several machines again and keep the
  // store of the first round (a bug of torch 2.11); World empties it if they do not.
  std::string elastic_run = {};
  std::string launcher = {};  // who started this worker, in messages: "Slurm"; empty: nobody known
  std::string launcher_mark = {};       // see find_launcher
  std::string size_variable = {};       // the variable that says world_size
  std::string sign_variable = {};       // the variables that reveal the launcher, for `env -u`
  std::vector<std::string> interfaces;  // GLOO_SOCKET_IFNAME, separated by commas
  // For workers that `decent-train --workers` started: a socket that is closed when that process
  // ends, and on worker 0 a socket that listens on master_port for the store.
  int supervisor = -1;
  int store_listener = -1;

  bool hosts_store() const { return rank == 0 && !agent_store; }
  bool one_machine() const { return local_world_size == world_size; }
  /// This worker among all that were started; see World::member for those that train together.
  Member member() const {
    return {.workers = everyone(world_size),
            .rank = rank,
            .local_size = local_world_size,
            .machines = machines,
            .hosts = hosts};
  }
};

/// How `decent-train --workers` tells its workers the two descriptors of Launch.
constexpr const char* kSupervisorVariable = "DECENT_SUPERVISOR";
constexpr const char* kStoreListenerVariable = "DECENT_STORE_LISTENER";

/// What a worker tells `decent-train --workers` through that socket.
constexpr char kSavesOnSignals = '!';  // from now on
constexpr char kFirstStepDone = '1';

/// Reads the variables of the first of these launchers that has set its own: whoever sets RANK,
/// WORLD_SIZE, MASTER_ADDR and MASTER_PORT, perhaps with LOCAL_RANK and LOCAL_WORLD_SIZE (torchrun,
/// Kubeflow); Open MPI; Hydra (MPICH); a step of Slurm; PMI. MASTER_ADDR, MASTER_PORT and
/// GLOO_SOCKET_IFNAME count under all of them. Without a launcher there is a single worker. Throws
/// UserError naming the variable that is missing or invalid. `proc`: where processes are looked up.
Launch read_launch(const Variables& variables, const std::filesystem::path& proc = "/proc");
Launch read_launch();  // environment_variable

}  // namespace decent
