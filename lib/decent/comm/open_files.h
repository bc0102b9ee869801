#pragma once
// The number of files, sockets among them, that a process may have open.

namespace decent {

/// Raises this process's limit, if necessary, so that one of `workers` workers can open all sockets
/// that it needs. Its child processes inherit the limit. Throws UserError if the system does not
/// allow enough: later, each library would report that in its own way, or wait for ever.
void allow_open_files(int workers);

}  // namespace decent
