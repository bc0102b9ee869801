#pragma once
// Workers of one machine may exchange otherwise than workers of several.

#include <vector>

#include "decent/parallel/exchange/methods.h"
#include "decent/topology/topology.h"

namespace decent {

/// Whether all members of `edge` are on one machine. `machines`: see Launch::machines.
bool within_machine(const Edge& edge, const std::vector<int>& machines);

/// Exchanges by `within` in the edges whose members are all on one machine, and by `between` in all
/// others. A worker has one edge in a phase, so that in each step it exchanges in one of the two
/// ways, and gets the same bits as by that method alone. State of `within` has the prefix "within."
/// in checkpoints, that of `between` none. `machines`: Launch::machines, Distributed::machines();
/// make() throws UserError unless it has an entry for every worker.
ExchangeChoice by_machine(ExchangeChoice between, ExchangeChoice within, std::vector<int> machines);

}  // namespace decent
