// TorchScript put together from parts.

#include <gtest/gtest.h>

#include <cmath>

#include "decent/onnx/translate/expression.h"
#include "decent/onnx/translate/value.h"

namespace decent::onnx {
namespace {

TEST(Expression, HasLiterals) {
  EXPECT_EQ(Expression(true).text(), "True");
  EXPECT_EQ(Expression(false).text(), "False");
  EXPECT_EQ(Expression(0).text(), "0");
  EXPECT_EQ(Expression(std::int64_t{-1}).text(), "-1");
  EXPECT_EQ(Expression(1.0).text(), "1.0");
  EXPECT_EQ(Expression(-INFINITY).text(), "float(\"-inf\")");
  EXPECT_EQ(Expression(Integer::of(3)).text(), "3");
}

TEST(Expression, Calls) {
  EXPECT_EQ(call("torch.linear", "x", std::string("w"), "None").text(), "torch.linear(x, w, None)");
  EXPECT_EQ(call("torch.sum", "x", keyword("keepdim", true)).text(), "torch.sum(x, keepdim=True)");
  EXPECT_EQ(method("x", "dim").text(), "x.dim()");
  EXPECT_EQ(attribute("x", "device").text(), "x.device");
  EXPECT_EQ(subscript("x", "1:3").text(), "x[1:3]");
  EXPECT_EQ(method(binary("x", "+", "y"), "size", 0).text(), "(x + y).size(0)");
  EXPECT_EQ(subscript(binary("x", "+", "y"), 0).text(), "(x + y)[0]");
}

TEST(Expression, PutsArgumentsInThePlaceOfArguments) {
  const Arguments none;
  const Arguments two("a", "b");
  EXPECT_EQ(call("f", none).text(), "f()");
  EXPECT_EQ(call("f", none, "x", none, two, 1, none).text(), "f(x, a, b, 1)");
}

TEST(Expression, Lists) {
  EXPECT_EQ(list("x", 1).text(), "[x, 1]");
  EXPECT_EQ(list(std::vector<std::int64_t>{1, -1}).text(), "[1, -1]");
  EXPECT_EQ(list(std::vector{Integer::of(1), Integer::size("n")}).text(), "[1, n]");
  EXPECT_EQ(list(std::vector<std::int64_t>()).text(), "annotate(List[int], [])");
}

// As Python reads it without the parentheses that are left out.
TEST(Expression, HasParenthesesWhereTheyAreNeeded) {
  const auto text = [](const Expression& a, std::string_view sign, const Expression& b) {
    return binary(a, sign, b).text();
  };
  const Expression sum = binary("a", "+", "b");
  const Expression product = binary("a", "*", "b");
  EXPECT_EQ(text(sum, "+", "c"), "a + b + c");
  EXPECT_EQ(text("c", "-", sum), "c - (a + b)");
  EXPECT_EQ(text(sum, "/", product), "(a + b) / (a * b)");
  EXPECT_EQ(text(product, "/", sum), "a * b / (a + b)");
  EXPECT_EQ(text(product, "+", product), "a * b + a * b");
  const Expression less = binary(sum, "<", product);
  EXPECT_EQ(less.text(), "a + b < a * b");
  EXPECT_EQ(text(less, "==", less), "(a + b < a * b) == (a + b < a * b)");
  EXPECT_EQ(text(less, "and", binary("c", "or", less)), "a + b < a * b and (c or a + b < a * b)");
  const Expression choice = conditional(sum, less, product);
  EXPECT_EQ(choice.text(), "a + b if a + b < a * b else a * b");
  EXPECT_EQ(text(choice, "*", 2), "(a + b if a + b < a * b else a * b) * 2");
  EXPECT_EQ(conditional(choice, choice, choice).text(),
            "(" + choice.text() + ") if (" + choice.text() + ") else " + choice.text());
}

// Integers of shapes are text that never needs parentheses.
TEST(Expression, IsAnIntegerInParentheses) {
  const Integer sum = Integer::size(binary("a", "+", "b"));
  EXPECT_EQ(sum.text(), "(a + b)");
  EXPECT_EQ(Integer::size(binary(sum, "*", 2)).text(), "((a + b) * 2)");
  EXPECT_EQ(Integer::size(method("x", "size", 0)).text(), "x.size(0)");
}

}  // namespace
}  // namespace decent::onnx
