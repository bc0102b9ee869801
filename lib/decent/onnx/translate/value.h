#pragma once
// What is known about a value of an ONNX graph during the translation to TorchScript.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/ir.h"
#include "decent/onnx/translate/expression.h"

namespace decent::onnx {

/// One element of a shape: a number that is known now, or a TorchScript expression of type int that
/// is evaluated when the model runs ("x.size(0)").
struct Integer {
  std::optional<std::int64_t> known;
  std::string expression;     // if it is not known; never needs parentheses
  bool not_negative = false;  // a size is not

  static Integer of(std::int64_t value) { return {value, "", value >= 0}; }
  static Integer computed(const Expression& expression, bool not_negative) {
    return {std::nullopt, expression.within(Precedence::primary), not_negative};
  }
  static Integer size(const Expression& expression) { return computed(expression, true); }

  /// TorchScript: "12", "x.size(0)".
  std::string text() const { return known ? std::to_string(*known) : expression; }
};

/// A value: a tensor, or a list of tensors (ONNX's sequence).
///
/// It is one or several of: text in the TorchScript source; a constant; integers known one by one,
/// by which arithmetic on shapes works without tensors.
struct Value {
  enum class Kind { tensor, sequence };
  Kind kind = Kind::tensor;
  ElementType type = ElementType::undefined;
  std::optional<std::int64_t> rank;  // for a sequence: the rank of all its elements
  /// The whole shape, if it is the same in every run: for parameters and constants.
  std::optional<std::vector<std::int64_t>> dims;
  /// An expression for the tensor: a variable, "self.fc.weight". Empty if the source has none yet.
  std::string text;
  /// Elements that are the same in every run.
  std::shared_ptr<const Tensor> constant;
  /// Elements of an integer or boolean tensor of rank 0 or 1, one by one.
  std::optional<std::vector<Integer>> integers;
  /// Whether a gradient may flow from here to a trainable parameter.
  bool has_gradient = false;

  static Value of_constant(std::shared_ptr<const Tensor> tensor);
  /// `rank` is 1, or 0 for a single integer; any other value is taken as 1.
  static Value of_integers(std::vector<Integer> integers, std::int64_t rank,
                           ElementType type = ElementType::int64);

  bool is_constant() const { return constant != nullptr; }
};

/// The most dimensions of a tensor, which is the limit of PyTorch's iterators.
inline constexpr std::int64_t kMaxDimensions = 64;

/// The most integers that are kept one by one.
inline constexpr std::size_t kMaxIntegers = 64;

}  // namespace decent::onnx
