#pragma once
// Finds results into whose memory a later node writes: their nodes must share that memory, and may
// not make a copy instead.

#include <set>

#include "decent/pt2/analyse/schemas.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The nodes of the graph, and of all graphs inside of it, one of whose results shares memory into
/// which a later node writes, or may write: an operator of higher order may write into all that it
/// is given, and whoever runs an inner graph into all that this graph is given.
std::set<const Node*> find_written_later(const ExportedProgram& program,
                                         const OperatorSchemas& schemas);

}  // namespace decent::pt2
