#pragma once
// Finds nodes that write into the module's own tensors: into buffers (moving averages, the vectors
// of spectral norm, counters of batches), into parameters (an averaged teacher, limits on weights),
// or into constants, whose changes cannot be kept. An operator's schema says whether it writes.
// Also finds results into whose memory a later node writes: their nodes must share that memory, and
// may not make a copy instead.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "decent/pt2/analyse/mode.h"
#include "decent/pt2/analyse/schemas.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// A tensor of the module that is a value of a graph, or of which the value is a view.
struct OwnTensor {
  enum class Kind { buffer, parameter, constant };
  std::string name;  // "bn1.num_batches_tracked"
  Kind kind = Kind::buffer;
};

struct BufferWrite {
  std::string buffer;     // or the parameter, or the constant
  std::size_t input = 0;  // the node's input that is the buffer, or a view of it
  OwnTensor::Kind kind = OwnTensor::Kind::buffer;
};

/// The module's own tensors that a node writes.
struct NodeWrites {
  std::vector<BufferWrite> tensors;  // in the order of the node's inputs; at least one
  /// Whether the node writes one tensor and returns only that tensor, as add_ does. An operator
  /// such as fused_moving_avg_obs_fake_quant writes several and returns something else.
  bool gives_written = false;
};

using BufferWrites = std::map<const Node*, NodeWrites>;

/// "bn1": the module to which a buffer belongs; "" for the whole model.
std::string module_of_buffer(const std::string& buffer);

/// The writes in the graph and in all graphs inside of it.
BufferWrites find_buffer_writes(const ExportedProgram& program, const OperatorSchemas& schemas);

/// Running statistics that norms update in training. The schemas of those operators do not say so.
std::vector<OwnTensor> find_statistics(const ExportedProgram& program,
                                       const OperatorSchemas& schemas, const ModeSurvey& modes);

/// The nodes of the graph, and of all graphs inside of it, one of whose results shares memory into
/// which a later node writes, or may write: an operator of higher order may write into all that it
/// is given, and whoever runs an inner graph into all that this graph is given.
std::set<const Node*> find_written_later(const ExportedProgram& program,
                                         const OperatorSchemas& schemas);

}  // namespace decent::pt2
