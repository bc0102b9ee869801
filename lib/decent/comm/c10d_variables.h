#pragma once
// How c10d is told to leave errors to this library.

namespace decent {

/// Leaves errors to this library, which reports them in its own words: turns off c10d's warnings,
/// which come with C++ stack traces, and what its NCCL groups do after an error by themselves
/// (throw in a thread, end the process, sleep). It does so by environment variables; those that are
/// set already stay. Call it before the first World, while there is no other thread.
void silence_c10d_warnings();

}  // namespace decent
