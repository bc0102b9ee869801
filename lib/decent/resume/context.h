#pragma once
// What resuming needs to know about the run.

#include "decent/comm/team.h"
#include "decent/config/recipe.h"
#include "decent/runfolder/log.h"

namespace decent {

struct ResumeContext {
  const Team& team;
  const Recipe& recipe;
  Log& log;
  bool higher_is_better = false;  // of the metric checkpoint.keep_best
};

}  // namespace decent
