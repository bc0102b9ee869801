#pragma once
// How values get into the body of a Loop, Scan or SequenceMap, and through its rounds.

#include <cstddef>
#include <string_view>
#include <vector>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// A value that a Loop or Scan passes from one round to the next, by its indices among inputs and
/// outputs.
struct LoopState {
  std::size_t input = 0;  // of the node: the value before the first round
  std::size_t body_input = 0;
  std::size_t body_output = 0;
  std::size_t output = 0;  // of the node: the value after the last round
  /// Whether the body passes it on unchanged. Such a state is the same value before, in and after
  /// the loop. Exporters pass weights into a body in this way (tf2onnx for Keras' recurrent
  /// layers).
  bool is_unchanged = false;
};

/// The states of a Loop or Scan, in order; empty for other operators, and if the body's numbers of
/// inputs and outputs do not fit the node's.
std::vector<LoopState> loop_states(const Node& node);
/// The states that no round changes.
std::vector<LoopState> unchanged_states(const Node& node);

/// An input of a Scan or SequenceMap of which the body gets one element in each round.
struct ElementInput {
  std::size_t input = 0;
  std::size_t body_input = 0;
};

/// The element inputs of a Scan or SequenceMap; empty as above.
std::vector<ElementInput> element_inputs(const Node& node);

/// The graph in an attribute of that name, or nullptr.
const Graph* body_of(const Node& node, std::string_view attribute);

}  // namespace decent::onnx
