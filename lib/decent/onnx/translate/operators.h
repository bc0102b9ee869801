#pragma once
// The operators that can be imported: a table of name, versions and translation. Each family of
// operators has a file, operators/<family>.cpp, with its part of the table, and
// operators/<family>.py where it needs methods that PyTorch lacks (helpers.h).

#include <span>
#include <string_view>
#include <vector>

#include "decent/onnx/format/read.h"
#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

/// Whether a gradient passes from an operator's outputs to its inputs.
enum class Gradient {
  flows,
  stops,  // piecewise constant, or not differentiable: Round, ArgMax, comparisons
};

/// Whether the operator is computed once, at import, where all inputs are constants.
enum class Folding {
  never,      // it is random, keeps state, or the size of its outcome is not told beforehand
  broadcast,  // the outcome has at most the broadcast shape of the inputs
  sum,        // no more elements than the inputs have together: views, Concat
  pairs,      // no more than the counts of the inputs multiplied: Gather
  first,      // as many as input 0, the only one whose elements matter: CastLike
  product,  // no more than input 0's times the product of the integers in the others: Expand, Tile;
            // without input 1, the product of the integers in input 0: ConstantOfShape
};

struct Operator {
  std::string_view name;
  std::int64_t first_opset;  // oldest version of the standard operators that is understood
  void (*translate)(NodeContext&);
  Folding folding = Folding::never;
  Gradient gradient = Gradient::flows;
  std::int64_t last_opset = kNewestOpset;
};

/// All of them, by name; several entries of a name have different versions.
const std::vector<Operator>& operator_table();

/// The entry for a node, or nullptr. Domain "" only.
const Operator* find_operator(std::string_view name, std::int64_t opset);

/// The families: operators/<family>.cpp gives <family>_operators(), its part of the table.
#define DECENT_OPERATOR_FAMILIES(ROW) \
  ROW(activation)                     \
  ROW(attention)                      \
  ROW(bitwise)                        \
  ROW(bounds)                         \
  ROW(comparison)                     \
  ROW(control)                        \
  ROW(convolution)                    \
  ROW(creation)                       \
  ROW(cutting)                        \
  ROW(elementwise)                    \
  ROW(grid)                           \
  ROW(indexing)                       \
  ROW(loss)                           \
  ROW(matrix)                         \
  ROW(normalization)                  \
  ROW(pooling)                        \
  ROW(random)                         \
  ROW(recurrent)                      \
  ROW(reduction)                      \
  ROW(resize)                         \
  ROW(scatter)                        \
  ROW(sequence)                       \
  ROW(shape)                          \
  ROW(signal)

#define DECENT_DECLARE_FAMILY(family) std::span<const Operator> family##_operators();
DECENT_OPERATOR_FAMILIES(DECENT_DECLARE_FAMILY)
#undef DECENT_DECLARE_FAMILY

/// Not in the table: functions that stand for patterns of the file (patterns.h).
std::span<const Operator> pattern_operators();
const Operator* find_pattern_operator(std::string_view name);

}  // namespace decent::onnx
