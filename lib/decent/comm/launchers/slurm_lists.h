#pragma once
// Slurm's short forms of lists.

#include <optional>
#include <string>
#include <string_view>

namespace decent {

/// The first of the hosts "rack[1-2]node[01-03,07]-ib,gpu1": "rack1node01-ib". Empty if `hosts` is
/// no such list.
std::string first_slurm_host(std::string_view hosts);

/// How many tasks the node with this number has, in "4(x2),3": four on nodes 0 and 1, three on node
/// 2. nullopt if `tasks` is no such list, or has no such node.
std::optional<int> slurm_tasks_on_node(std::string_view tasks, int node);

}  // namespace decent
