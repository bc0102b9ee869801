#pragma once
// The operators that can be imported: a table of name, versions and translation. Each family of
// operators has a file, operators/<family>.cpp, with its part of the table, and
// operators/<family>.py if it needs methods that PyTorch lacks (helpers.h).

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

/// Whether the operator is computed once, at import, if all inputs are constants.
enum class Folding {
  never,      // it is random, keeps state, or the size of its result is not known before
  broadcast,  // the result has at most the broadcast shape of the inputs
  sum,        // at most as many elements as the inputs together: views, Concat
  pairs,      // at most the product of the inputs' numbers of elements: Gather
  first,      // as many as input 0, the only one whose elements matter: CastLike
  product,    // at most input 0's times the product of the integers in the others: Expand, Tile;
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

/// All operators, sorted by name; several entries of one name have different versions.
const std::vector<Operator>& operator_table();

/// The entry for a node, or nullptr. Domain "" only.
const Operator* find_operator(std::string_view name, std::int64_t opset);

/// The families: operators/<family>.cpp defines <family>_operators(), its part of the table.
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

/// Not in the table: functions that replace patterns of the file (patterns.h).
std::span<const Operator> pattern_operators();
const Operator* find_pattern_operator(std::string_view name);

}  // namespace decent::onnx
