#pragma once
// Values of parallel.method as resuming knows them.

#include <vector>

#include "decent/config/names.h"

namespace decent::testing {

inline const std::vector<config::MethodName> kMethods = {
    {.name = "gossip", .averages_weights = true},
    {.name = "all_reduce", .averages_weights = false, .sends = {"fp32", "bf16"}},
    {.name = "none", .averages_weights = false}};

}  // namespace decent::testing
