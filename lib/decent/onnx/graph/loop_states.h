#pragma once
// How values go into the body of a Loop, Scan or SequenceMap, and through its rounds.

#include <cstddef>
#include <string_view>
#include <vector>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// A value that goes from one round of a Loop or Scan to the next. Numbers of inputs and outputs.
struct LoopState {
  std::size_t input = 0;  // of the node: the value before the first round
  std::size_t body_input = 0;
  std::size_t body_output = 0;
  std::size_t output = 0;  // of the node: the value after the last round
  /// Whether the body hands it on as it came. Such a state is one value, before, in and after the
  /// loop: exporters pass weights into a body so (tf2onnx those of Keras' recurrent layers).
  bool is_unchanged = false;
};

/// The states of a Loop or Scan, in order; empty for other operators and where the body has other
/// numbers of inputs and outputs than the node gives it.
std::vector<LoopState> loop_states(const Node& node);
/// Those of them that no round changes.
std::vector<LoopState> unchanged_states(const Node& node);

/// An input of a Scan or SequenceMap that its body gets an element of in each round.
struct ElementInput {
  std::size_t input = 0;
  std::size_t body_input = 0;
};

/// Those of a Scan or SequenceMap; empty as above.
std::vector<ElementInput> element_inputs(const Node& node);

/// The graph in an attribute of that name, or nullptr.
const Graph* body_of(const Node& node, std::string_view attribute);

}  // namespace decent::onnx
