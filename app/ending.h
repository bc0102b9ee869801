#pragma once
// The end of the program: its last message, who is told, and the exit code.

#include "decent/comm/control/control.h"
#include "program.h"

namespace decent {

/// Ends the process because of a failure that all workers know. Called by the control thread, while
/// the training thread may be waiting for anything. `reports`: this worker tells the user.
[[noreturn]] void end_after_failure(Program& program, const Failure& failure, bool reports);

/// Tells the other workers about the error that is being handled, then ends the process.
[[noreturn]] void end_with_error(Program& program);

/// Ends the process that started the workers, which have already told the user how they ended.
[[noreturn]] void end_after_workers(int code);

/// Ends the process after it did all that it was asked to do and closed all that it opened.
[[noreturn]] void end_well();

}  // namespace decent
