// Hydra, the mpiexec of MPICH and its descendants (Intel MPI, MVAPICH): the variables of PMI, and
// how many workers this machine has.

#include <string>

#include "decent/comm/control/launcher_watch.h"
#include "decent/comm/launchers/launcher.h"

namespace decent {
namespace {

bool started_by_hydra(const Variables& variables) {
  return variables("PMI_RANK") && variables("MPI_LOCALNRANKS");
}

void read_hydra(const LauncherVariables& variables, Launch& launch) {
  launch.launcher_mark = "PMI_RANK";
  variables.world_size("PMI_SIZE", "PMI_RANK -u PMI_SIZE", launch);
  launch.rank = variables.required("PMI_RANK", 0, launch.world_size - 1);
  if (launch.world_size == 1) return;
  launch.local_world_size = variables.required("MPI_LOCALNRANKS", 1, launch.world_size);
  launch.local_rank = variables.required("MPI_LOCALRANKID", 0, launch.local_world_size - 1);
  // Hydra names no job, but one process of it starts all workers of a machine.
  std::optional<std::int64_t> id;
  if (launch.one_machine()) id = find_launcher(launch.launcher_mark, variables.proc());
  if (id) launch.store_prefix = "/hydra/" + std::to_string(*id);
  choose_store(
      variables,
      {.address = "", .id = id, .example = "mpiexec -genv MASTER_ADDR .. -genv MASTER_PORT .."},
      launch);
}

}  // namespace

const Launcher kHydra{"Hydra", started_by_hydra, read_hydra};

}  // namespace decent
