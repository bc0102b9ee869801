#pragma once
// Nodes that write into the module's own tensors. Into buffers: moving averages, the vectors of
// spectral norm, counters of batches; into parameters: an averaged teacher, limits on weights; into
// constants, which have no place to be kept. Whether an operator writes is what its schema says.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "decent/pt2/analyse/mode.h"
#include "decent/pt2/analyse/schemas.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// A tensor of the module that a value of a graph is, or is a view of.
struct OwnTensor {
  enum class Kind { buffer, parameter, constant };
  std::string name;  // "bn1.num_batches_tracked"
  Kind kind = Kind::buffer;
};

struct BufferWrite {
  std::string buffer;     // or the parameter, or the constant
  std::size_t input = 0;  // of the node: the buffer, or a view of it
  OwnTensor::Kind kind = OwnTensor::Kind::buffer;
};

/// What a node writes of the module's own tensors.
struct NodeWrites {
  std::vector<BufferWrite> tensors;  // in the order of the node's inputs; at least one
  /// The node writes one tensor, and its only result is that tensor, as with add_. An operator such
  /// as fused_moving_avg_obs_fake_quant writes several and returns something else.
  bool gives_written = false;
};

using BufferWrites = std::map<const Node*, NodeWrites>;

/// "bn1": the module that a buffer belongs to; "" for the whole.
std::string module_of_buffer(const std::string& buffer);

/// Those of the graph and of all inside of it.
BufferWrites find_buffer_writes(const ExportedProgram& program, const OperatorSchemas& schemas);

/// Running statistics that norms update in training. The schemas of those operators do not say so.
std::vector<OwnTensor> find_statistics(const ExportedProgram& program,
                                       const OperatorSchemas& schemas, const ModeSurvey& modes);

}  // namespace decent::pt2
