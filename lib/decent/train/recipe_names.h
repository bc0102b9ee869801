#pragma once
// The names that recipes may use, put together from the rooms that give them.

#include "decent/config/names.h"

namespace decent {

/// With what this process has registered until now (register_topology, register_exchange,
/// register_data_format).
config::Names recipe_names();

}  // namespace decent
