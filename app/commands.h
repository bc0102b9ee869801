#pragma once
// What the program does, one function for each way to start it. All but --workers are collective.

#include "program.h"

namespace decent {

/// Whether this process is to start the workers (--workers) rather than to be one.
bool starts_workers(const Flags& flags);

/// Starts the workers and waits for them; returns the exit code. Throws UserError.
int start_workers(const Program& program, const Flags& flags);

/// Trains, from the start or from a checkpoint.
void train(Program& program);

/// --dry-run.
void dry_run(Program& program);

/// --eval-only and --export.
void use_checkpoint(Program& program);

/// --print-config.
void print_config(Program& program);

}  // namespace decent
