#pragma once
// The names that recipes may use, put together from the rooms that give them.

#include "decent/config/names.h"

namespace decent {

/// Includes all names that this process has registered so far (register_topology,
/// register_exchange, register_data_format).
config::Names recipe_names();

}  // namespace decent
