// PMI's variables alone, as launchers of some clusters set them.

#include "decent/comm/launchers/launcher.h"

namespace decent {
namespace {

bool started_by_pmi(const Variables& variables) {
  return variables("PMI_RANK") || variables("PMI_SIZE");
}

void read_pmi(const LauncherVariables& variables, Launch& launch) {
  launch.launcher_mark = "PMI_RANK";
  variables.world_size("PMI_SIZE", "PMI_RANK -u PMI_SIZE", launch);
  launch.rank = variables.required("PMI_RANK", 0, launch.world_size - 1);
  if (launch.world_size == 1) return;
  variables.read_place("PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", launch);
  choose_store(variables,
               {.address = "", .id = std::nullopt, .example = "export it before the start"},
               launch);
}

}  // namespace

const Launcher kPmi{"PMI", started_by_pmi, read_pmi};

}  // namespace decent
