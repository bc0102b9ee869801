#pragma once
// Expressions of TorchScript, put together from parts: call("torch.linear", x, weight) is
// "torch.linear(x, weight)".

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decent::onnx {

struct Integer;

/// How strongly an expression's outermost operator binds, from the weakest to the strongest.
enum class Precedence { conditional, disjunction, conjunction, comparison, sum, product, primary };

class Expression {
 public:
  /// Text as it is: a name, a literal, or anything else that never needs parentheses.
  Expression(std::string text) : text_(std::move(text)) {}
  Expression(std::string_view text) : text_(text) {}
  Expression(const char* text) : text_(text) {}
  Expression(const Integer& integer);
  /// Literals.
  Expression(bool value) : text_(value ? "True" : "False") {}
  Expression(std::integral auto value) : text_(std::to_string(value)) {}
  Expression(double value);

  const std::string& text() const { return text_; }
  /// The text inside another expression: in parentheses if it binds less than `least`.
  std::string within(Precedence least) const;

 private:
  Expression(std::string text, Precedence precedence)
      : text_(std::move(text)), precedence_(precedence) {}
  friend Expression binary(const Expression&, std::string_view, const Expression&);
  friend Expression conditional(const Expression&, const Expression&, const Expression&);

  std::string text_;
  Precedence precedence_ = Precedence::primary;
};

/// A keyword argument: "dtype=torch.int64".
struct Keyword {
  std::string text;
};
Keyword keyword(std::string_view name, const Expression& value);

/// Arguments of a call or elements of a list, in order: expressions, keywords, and Arguments, whose
/// members are inserted one by one.
class Arguments {
 public:
  template <typename... Parts>
  explicit Arguments(const Parts&... parts) {
    (add(parts), ...);
  }
  void add(const Expression& argument) { append(argument.text()); }
  void add(const Keyword& argument) { append(argument.text); }
  void add(const Arguments& arguments) { append(arguments.text_); }

  const std::string& text() const { return text_; }

 private:
  void append(const std::string& text);
  std::string text_;
};

/// "torch.add(x, y)".
template <typename... Parts>
Expression call(std::string_view function, const Parts&... arguments) {
  return std::string(function) + "(" + Arguments(arguments...).text() + ")";
}

/// "x.to(torch.int64)".
template <typename... Parts>
Expression method(const Expression& object, std::string_view name, const Parts&... arguments) {
  return call(object.within(Precedence::primary) + "." + std::string(name), arguments...);
}

/// "x.device".
Expression attribute(const Expression& object, std::string_view name);

/// "x[0]"; `place` may be a slice, "1:3".
Expression subscript(const Expression& object, const Expression& place);

/// "[x, y]", with at least one element.
template <typename... Parts>
Expression list(const Parts&... elements) {
  return "[" + Arguments(elements...).text() + "]";
}

/// A List[int]: "[1, x.size(0)]"; an empty list states its type.
Expression list(const std::vector<std::int64_t>& values);
Expression list(const std::vector<Integer>& values);

/// "annotate(List[Tensor], [])" for "Tensor".
Expression empty_list(std::string_view element_type);

/// "a + b", with operands in parentheses where they need them. Signs: or, and, comparisons, +, -,
/// *, /, //, %.
Expression binary(const Expression& a, std::string_view sign, const Expression& b);

/// "yes if condition else no".
Expression conditional(const Expression& yes, const Expression& condition, const Expression& no);

}  // namespace decent::onnx
