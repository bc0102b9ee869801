#pragma once
// Makes c10d leave errors to this library.

namespace decent {

/// Turns off c10d's warnings, which come with C++ stack traces, and the reactions of its NCCL
/// groups to an error (throw in a thread, end the process, sleep): this library reports errors in
/// its own words. Sets environment variables, except those that are set already. Call it before the
/// first World, while there is no other thread.
void silence_c10d_warnings();

}  // namespace decent
