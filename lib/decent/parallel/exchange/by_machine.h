#pragma once
// Workers of one machine may exchange by another method than workers of different machines.

#include <vector>

#include "decent/parallel/exchange/methods.h"
#include "decent/topology/topology.h"

namespace decent {

/// Whether all members of `edge` are on one machine. `machines`: see Launch::machines.
bool within_machine(const Edge& edge, const std::vector<int>& machines);

/// Exchanges by `within` in the edges whose members are all on one machine, and by `between` in all
/// others, both with `options`. A worker has one edge in a phase, so in each step it
/// exchanges by one of the two methods, and gets the same bits as by that method alone. In
/// checkpoints, state of `within` has the prefix "within.", state of `between` none. `machines`:
/// Launch::machines, Distributed::machines(); make() throws UserError unless it has an entry for
/// every worker. Throws UserError if `between` or `within` has options of its own: with other
/// slices it would go through the phases at another speed.
ExchangeChoice by_machine(ExchangeChoice between, ExchangeChoice within, std::vector<int> machines,
                          ExchangeOptions options = {});

}  // namespace decent
