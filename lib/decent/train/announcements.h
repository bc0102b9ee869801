#pragma once
// The first lines of a run.

#include <cstdint>

#include "decent/train/log.h"
#include "decent/train/setup.h"

namespace decent {

struct RunSize {
  int workers = 1;
  std::int64_t parameters = 0;  // elements that are trained
  std::int64_t buckets = 0;
};

/// What will be trained, how, and where it goes; notes and warnings on it.
void announce_run(Log& log, const Setup& setup, const RunSize& size);

}  // namespace decent
