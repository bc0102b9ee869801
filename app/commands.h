#pragma once
// The commands of the program, one function for each. All but --workers and --report are
// collective.

#include "program.h"

namespace decent {

/// Whether this process is to start the workers (--workers), and is not a worker itself.
bool starts_workers(const Flags& flags);

/// Starts the workers and waits for them; returns the exit code. Throws UserError.
int start_workers(const Program& program, const Flags& flags);

/// Whether this process is to show runs (--report), which takes neither a recipe nor other workers.
bool shows_runs(const Flags& flags);

/// --report: rank 0 writes the page, or serves it until it is stopped. Throws UserError,
/// WriteError.
void show_runs(const Launch& launch, const Flags& flags);

/// Trains, from the start or from a checkpoint.
void train(Program& program);

/// --dry-run.
void dry_run(Program& program);

/// --eval-only, --predict and --export.
void use_checkpoint(Program& program);

/// --print-config.
void print_config(Program& program);

}  // namespace decent
