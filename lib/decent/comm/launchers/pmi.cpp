// PMI's variables alone, as launchers of some clusters set them.

#include "decent/comm/launchers/launcher.h"
#include "decent/core/error.h"

namespace decent {
namespace {

bool started_by_pmi(const Variables& variables) {
  return variables("PMI_RANK") || variables("PMI_SIZE");
}

void read_pmi(const LauncherVariables& variables, Launch& launch) {
  launch.launcher_mark = "PMI_RANK";
  launch.world_size = variables.required("PMI_SIZE", 1, kMaxWorkers);
  launch.rank = variables.required("PMI_RANK", 0, launch.world_size - 1);
  if (launch.world_size == 1) return;
  if (!variables.has("PMI_LOCAL_SIZE") || !variables.has("PMI_LOCAL_RANK")) {
    throw UserError(
        "the launcher set PMI_RANK and PMI_SIZE, but neither PMI_LOCAL_RANK and "
        "PMI_LOCAL_SIZE nor what any other launcher tells: which workers are on this "
        "machine is unknown.\nSet RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, "
        "MASTER_ADDR and MASTER_PORT for each worker");
  }
  launch.local_world_size = variables.required("PMI_LOCAL_SIZE", 1, launch.world_size);
  launch.local_rank = variables.required("PMI_LOCAL_RANK", 0, launch.local_world_size - 1);
  choose_store(variables,
               {.address = "", .id = std::nullopt, .example = "export it before the start"},
               launch);
}

}  // namespace

const Launcher kPmi{"PMI", started_by_pmi, read_pmi};

}  // namespace decent
