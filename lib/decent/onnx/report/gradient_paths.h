#pragma once
// Finds the weights of a graph that a loss can reach.

#include <span>
#include <string>
#include <vector>

#include "decent/onnx/classify/classify.h"
#include "decent/onnx/translate/translation.h"

namespace decent::onnx {

/// A weight whose paths to the outputs all go through an operator without a gradient.
struct CutWeight {
  std::string name;  // in the module
  std::string node;  // the first such operator: "node 'argmax' (ArgMax)"
};

struct GradientPaths {
  std::vector<CutWeight> cut;
  /// Names of weights that no path connects to the outputs at all. They never get a gradient.
  std::vector<std::string> unconnected;
};

/// Follows the steps of the translation back from `outputs`, names of the graph's outputs; from all
/// outputs if that is empty. Names are in the order of the file.
GradientPaths find_gradient_paths(const Model& model, const Classification& classification,
                                  const Translation& translation,
                                  std::span<const std::string> outputs);

/// Throws UserError naming the weights that are cut and not frozen (globs of model.freeze), with
/// the operators that cut them.
void check_gradient_paths(const GradientPaths& paths, std::span<const std::string> frozen);

}  // namespace decent::onnx
