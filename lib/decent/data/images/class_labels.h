#pragma once
// Labels that are texts, and the numbers of the classes that they name.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace decent {

/// How classes are numbered.
struct ClassNumbers {
  /// The names of the training data's classes, whose order gives the numbers; empty if the training
  /// data numbers them itself. nullopt: this is the training data.
  std::optional<std::vector<std::string>> known = std::nullopt;
  std::string where = {};  // the source of `known`, for messages
  bool bytewise = false;   // the key class_order
};

struct NumberedLabels {
  std::vector<std::int64_t> numbers;  // one for each label
  std::vector<std::string> classes;   // their names; none if the labels are numbers
};

/// Throws the error about label `index`.
using WrongLabel = std::function<void(std::size_t index, const std::string& problem)>;

/// If all labels are whole numbers, they are the classes' numbers; otherwise they are names,
/// numbered in the order of their bytes. Labels that `numbers` knows get their known numbers.
/// Calls `wrong` for a label of no known class and for a marker of a missing value among numbers.
NumberedLabels numbered_labels(std::span<const std::string> labels, const ClassNumbers& numbers,
                               const WrongLabel& wrong);

/// The number, if all of the text is one.
std::optional<std::int64_t> whole_number(const std::string& text);

}  // namespace decent
