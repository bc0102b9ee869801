// Comparisons, logic, and the choice between two tensors.

#include <algorithm>
#include <functional>

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

std::optional<bool> known_comparison(const std::string& sign, const Integer& a, const Integer& b) {
  if (a.known && b.known) {
    if (sign == "==") return *a.known == *b.known;
    if (sign == "<") return *a.known < *b.known;
    if (sign == "<=") return *a.known <= *b.known;
    if (sign == ">") return *a.known > *b.known;
    return *a.known >= *b.known;
  }
  if (a.text() == b.text()) return sign.back() == '=';
  const bool below = b.not_negative && a.known && *a.known < 0;  // a < b
  const bool above = a.not_negative && b.known && *b.known < 0;
  if (!below && !above) return std::nullopt;
  return sign == "==" ? false : below == (sign.front() == '<');
}

// A comparison of shapes; it gives an int of Python if one integer is compared.
std::optional<Integer> comparison(const std::string& sign, const Integer& a, const Integer& b,
                                  bool alone) {
  if (const auto known = known_comparison(sign, a, b)) return Integer::of(*known ? 1 : 0);
  if (!alone) return std::nullopt;
  return Integer::size(call("int", binary(a, sign, b)));
}

// The elements of the first `inputs` inputs, of rank 0 and 1, side by side, if all are known one by
// one.
std::optional<std::vector<std::vector<Integer>>> broadcast_integers(NodeContext& c,
                                                                    std::size_t inputs) {
  std::vector<std::vector<Integer>> columns;
  std::size_t count = 1;
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto integers = c.integers(i);
    if (!integers || integers->empty()) return std::nullopt;
    if (integers->size() != 1) count = integers->size();
    columns.push_back(*integers);
  }
  for (auto& column : columns) {
    if (column.size() == 1) column.resize(count, Integer(column.front()));
    if (column.size() != count) return std::nullopt;
  }
  return columns;
}

bool set_compared_integers(NodeContext& c, const std::string& sign) {
  const auto columns = broadcast_integers(c, 2);
  if (!columns) return false;
  std::vector<Integer> results;
  const std::size_t count = columns->front().size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto result = comparison(sign, (*columns)[0][i], (*columns)[1][i], count == 1);
    if (!result) return false;
    results.push_back(*result);
  }
  c.set_integers(0, std::move(results), *broadcast_rank(c, 2), ElementType::boolean);
  return true;
}

// The input in a comparable type, because PyTorch compares no unsigned types wider than 8 bits.
Expression comparable(NodeContext& c, std::size_t input) {
  const ElementType type = c.type(input);
  if (type == ElementType::uint16 || type == ElementType::uint32)
    return method(c.tensor(input), "to", "torch.int64");
  if (type == ElementType::uint64) return call(c.helper("_ordered"), c.tensor(input));
  return operand(c, input, 1 - input);
}

void compare(NodeContext& c, const std::string& sign) {
  if (set_compared_integers(c, sign)) return;
  for (std::size_t i = 0; i < 2; ++i) c.dtype(c.type(i));  // strings are refused
  const Expression a = comparable(c, 0);
  const Expression b = comparable(c, 1);
  c.set(0, binary(a, sign, b), ElementType::boolean, broadcast_rank(c));
}

void equal(NodeContext& c) { compare(c, "=="); }
void less(NodeContext& c) { compare(c, "<"); }
void less_or_equal(NodeContext& c) { compare(c, "<="); }
void greater(NodeContext& c) { compare(c, ">"); }
void greater_or_equal(NodeContext& c) { compare(c, ">="); }

using Logic = std::function<bool(bool, bool)>;

// If there is only one input, it is used twice.
bool set_known_logic(NodeContext& c, std::size_t inputs, const Logic& logic) {
  const auto columns = broadcast_integers(c, inputs);
  if (!columns) return false;
  std::vector<Integer> results;
  for (std::size_t i = 0; i < columns->front().size(); ++i) {
    const auto& a = columns->front()[i].known;
    const auto& b = columns->back()[i].known;
    if (!a || !b) return false;
    results.push_back(Integer::of(logic(*a != 0, *b != 0) ? 1 : 0));
  }
  c.set_integers(0, std::move(results), *broadcast_rank(c, inputs), ElementType::boolean);
  return true;
}

void logical(NodeContext& c, const std::string& name, const Logic& logic) {
  if (set_known_logic(c, 2, logic)) return;
  c.set(0, call("torch.logical_" + name, c.tensor(0), c.tensor(1)), ElementType::boolean,
        broadcast_rank(c));
}

void logical_and(NodeContext& c) { logical(c, "and", std::logical_and<>()); }
void logical_or(NodeContext& c) { logical(c, "or", std::logical_or<>()); }
void logical_xor(NodeContext& c) { logical(c, "xor", std::not_equal_to<>()); }

void logical_not(NodeContext& c) {
  if (set_known_logic(c, 1, [](bool a, bool) { return !a; })) return;
  c.set(0, call("torch.logical_not", c.tensor(0)), ElementType::boolean, c.rank(0));
}

void is_nan(NodeContext& c) {
  c.set(0, call("torch.isnan", c.tensor(0)), ElementType::boolean, c.rank(0));
}

void is_inf(NodeContext& c) {
  const bool negative = c.int_or("detect_negative", 1) != 0;
  const bool positive = c.int_or("detect_positive", 1) != 0;
  const Expression x = c.tensor(0);
  const Expression none = call("torch.zeros_like", x, keyword("dtype", "torch.bool"));
  const Expression found = positive && negative ? call("torch.isinf", x)
                           : positive           ? call("torch.isposinf", x)
                           : negative           ? call("torch.isneginf", x)
                                                : none;
  c.set(0, found, ElementType::boolean, c.rank(0));
}

// A choice between shapes, by one condition or by known conditions.
bool set_chosen_integers(NodeContext& c) {
  const auto columns = broadcast_integers(c, 3);
  if (!columns) return false;
  std::vector<Integer> results;
  for (std::size_t i = 0; i < columns->front().size(); ++i) {
    const Integer& condition = (*columns)[0][i];
    const Integer& yes = (*columns)[1][i];
    const Integer& no = (*columns)[2][i];
    if (condition.known) {
      results.push_back(*condition.known != 0 ? yes : no);
    } else {
      results.push_back(Integer::computed(conditional(yes, binary(condition, "!=", 0), no),
                                          yes.not_negative && no.not_negative));
    }
  }
  c.set_integers(0, std::move(results), *broadcast_rank(c, 3), c.type(1));
  return true;
}

void where(NodeContext& c) {
  if (set_chosen_integers(c)) return;
  c.dtype(c.type(1));  // strings are refused
  const Expression yes = operand(c, 1, 2);
  const Expression no = operand(c, 2, 1);
  c.set(0, call("torch.where", c.tensor(0), yes, no), c.type(1), broadcast_rank(c));
}

constexpr Operator kComparisonOperators[] = {
    {"And", 7, logical_and, Folding::broadcast, Gradient::stops},
    {"Equal", 7, equal, Folding::broadcast, Gradient::stops},
    {"Greater", 7, greater, Folding::broadcast, Gradient::stops},
    {"GreaterOrEqual", 12, greater_or_equal, Folding::broadcast, Gradient::stops},
    {"IsInf", 10, is_inf, Folding::broadcast, Gradient::stops},
    {"IsNaN", 9, is_nan, Folding::broadcast, Gradient::stops},
    {"Less", 7, less, Folding::broadcast, Gradient::stops},
    {"LessOrEqual", 12, less_or_equal, Folding::broadcast, Gradient::stops},
    {"Not", 1, logical_not, Folding::broadcast, Gradient::stops},
    {"Or", 7, logical_or, Folding::broadcast, Gradient::stops},
    {"Where", 9, where, Folding::broadcast},
    {"Xor", 7, logical_xor, Folding::broadcast, Gradient::stops},
};

}  // namespace

std::span<const Operator> comparison_operators() { return kComparisonOperators; }

}  // namespace decent::onnx
