#pragma once

namespace decent {

/// Has malloc keep freed memory. Every step frees what the next one asks for again; given back to
/// the system in between, it costs a page fault for each 4 KiB: 5 % of a step of a small
/// transformer.
void keep_freed_memory();

}  // namespace decent
