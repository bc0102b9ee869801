#pragma once
// What the program does, one function for each way to start it. All are collective.

#include "program.h"

namespace decent {

/// Trains, from the start or from a checkpoint.
void train(Program& program);

/// --dry-run.
void dry_run(Program& program);

/// --eval-only and --export.
void use_checkpoint(Program& program);

/// --print-config.
void print_config(Program& program);

}  // namespace decent
