#pragma once

namespace decent {

/// Makes malloc keep freed memory. Every step frees memory that the next step allocates again. If
/// the system got it back in between, each 4 KiB would cost a page fault: 5 % of a step of a small
/// transformer.
void keep_freed_memory();

}  // namespace decent
