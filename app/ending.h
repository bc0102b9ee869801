#pragma once
// The end of the program: what it says, whom it tells, and its exit code.

#include "decent/comm/control/control.h"
#include "program.h"

namespace decent {

/// Ends the process because of a failure that all workers have been told of. For the control
/// thread, whatever the training thread is waiting for. `reports`: this worker tells the user.
[[noreturn]] void end_after_failure(Program& program, const Failure& failure, bool reports);

/// Ends the process because of the error that is being handled, of which the other workers hear
/// first.
[[noreturn]] void end_with_error(Program& program);

/// Ends the process that started the workers, of whose end they have told the user.
[[noreturn]] void end_after_workers(int code);

/// Ends the process, which did all that it was asked to do and has closed all that it opened.
[[noreturn]] void end_well();

}  // namespace decent
