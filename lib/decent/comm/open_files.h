#pragma once
// The number of files, sockets among them, that a process may have open.

namespace decent {

/// Sees to it that a worker of so many may open the sockets that it needs to connect, raising its
/// own limit as far as the system lets it. Those it starts inherit that. Throws UserError where
/// the limit stays too low: in the middle of connecting each library tells of it in its own way,
/// or waits for ever.
void allow_open_files(int workers);

}  // namespace decent
