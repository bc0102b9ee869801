#include "decent/onnx/translate/expression.h"

#include "decent/core/script_text.h"
#include "decent/onnx/translate/value.h"

namespace decent::onnx {
namespace {

Precedence precedence_of(std::string_view sign) {
  if (sign == "or") return Precedence::disjunction;
  if (sign == "and") return Precedence::conjunction;
  if (sign == "+" || sign == "-") return Precedence::sum;
  if (sign == "*" || sign == "/" || sign == "//" || sign == "%") return Precedence::product;
  return Precedence::comparison;
}

Precedence next(Precedence precedence) {
  return static_cast<Precedence>(static_cast<int>(precedence) + 1);
}

template <typename Element>
Expression list_of_integers(const std::vector<Element>& values) {
  if (values.empty()) return empty_list("int");
  Arguments elements;
  for (const Element& value : values) elements.add(value);
  return list(elements);
}

}  // namespace

Expression::Expression(const Integer& integer) : text_(integer.text()) {}

Expression::Expression(double value) : text_(literal(value)) {}

std::string Expression::within(Precedence least) const {
  return precedence_ < least ? "(" + text_ + ")" : text_;
}

Keyword keyword(std::string_view name, const Expression& value) {
  return {std::string(name) + "=" + value.text()};
}

void Arguments::append(const std::string& text) {
  if (!text_.empty() && !text.empty()) text_ += ", ";
  text_ += text;
}

Expression attribute(const Expression& object, std::string_view name) {
  return object.within(Precedence::primary) + "." + std::string(name);
}

Expression subscript(const Expression& object, const Expression& place) {
  return object.within(Precedence::primary) + "[" + place.text() + "]";
}

Expression list(const std::vector<std::int64_t>& values) { return list_of_integers(values); }

Expression list(const std::vector<Integer>& values) { return list_of_integers(values); }

Expression empty_list(std::string_view element_type) { return list_text({}, element_type); }

// Operators of one precedence associate from left to right; comparisons would form a chain.
Expression binary(const Expression& a, std::string_view sign, const Expression& b) {
  const Precedence own = precedence_of(sign);
  const Precedence left = own == Precedence::comparison ? next(own) : own;
  return {a.within(left) + " " + std::string(sign) + " " + b.within(next(own)), own};
}

Expression conditional(const Expression& yes, const Expression& condition, const Expression& no) {
  const Precedence least = Precedence::disjunction;
  return {yes.within(least) + " if " + condition.within(least) + " else " +
              no.within(Precedence::conditional),
          Precedence::conditional};
}

}  // namespace decent::onnx
