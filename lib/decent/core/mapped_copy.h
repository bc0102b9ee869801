#pragma once
// Copying out of a mapped file that may be truncated meanwhile; internal to this room.
//
// If a page is gone, the kernel sends SIGBUS at the instruction that touches it. The first copy
// installs a handler for this signal, for the whole process, which ends the copy that touched
// the page. A SIGBUS of any other origin goes to the previous handler. Reading by pread() would
// need no handler, but costs a system call for each sample.

#include <cstddef>

namespace decent {

/// Like memcpy, but returns false if the memory at `from` belongs to a file that was truncated. The
/// content of `to` is unspecified then. Any thread.
bool copy_mapped(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace decent
