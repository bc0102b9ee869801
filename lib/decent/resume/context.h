#pragma once
// What resuming knows of the run that is to be resumed.

#include "decent/comm/world.h"
#include "decent/config/recipe.h"
#include "decent/report/log.h"

namespace decent {

struct ResumeContext {
  World& world;
  const Recipe& recipe;
  Log& log;
  bool higher_is_better = false;  // of the metric checkpoint.keep_best

  int rank() const { return world.launch().rank; }
  bool main_worker() const { return rank() == 0; }
};

}  // namespace decent
