#pragma once
// Copying memory that this processor core will not read again soon.

#include <cstddef>

namespace decent {

/// As std::memcpy, but the copy goes to memory without being read into this core's caches first,
/// and without driving other things out of them. Other threads see it like any other store of the
/// caller. Pays off from about 64 KiB.
void stream_copy(void* to, const void* from, std::size_t bytes);

}  // namespace decent
