#pragma once
// The graph of an exported program, from its JSON.

#include "decent/pt2/json/document.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// Throws UserError naming the place if something does not follow the schema.
Graph parse_graph(Json json);
TensorMeta parse_tensor_meta(Json json);

}  // namespace decent::pt2
