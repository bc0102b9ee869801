#pragma once
// Copying out of a mapped file that may be truncated meanwhile; internal to this room.
//
// The kernel tells of a page that is gone by SIGBUS, at the instruction that touches it. The first
// copy installs a handler for this signal, for the whole process, which ends the copy that touched
// the page; a SIGBUS of any other origin goes to the handler that was there before. Reading by
// pread() would need no handler, but costs a call to the kernel for each sample.

#include <cstddef>

namespace decent {

/// memcpy. False where the memory at `from` is of a file that has lost it; what `to` holds is not
/// specified then. Safe to call from any thread.
bool copy_mapped(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace decent
