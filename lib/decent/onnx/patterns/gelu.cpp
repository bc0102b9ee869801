// GELU, which exporters write out in parts before opset 20. Its own gradient is one kernel and
// exact, while the gradient of the parts would be rounded five times.

#include <algorithm>

#include "decent/onnx/patterns/pattern_matchers.h"

namespace decent::onnx {
namespace {

constexpr double kRootOfHalf = 0.70710678118654752;
constexpr double kRootOfTwoOverPi = 0.79788456080286536;
constexpr double kCubeFactor = 0.044715;

/// 0.5 * x * (1 + f(..)), in any order.
struct Halves {
  std::string x;
  const Node* function = nullptr;
  std::vector<const Node*> inner;
};

std::optional<Halves> match_halves(const PatternGraph& graph, const Node& root,
                                   std::string_view function) {
  if (!is(root, "Mul", 2)) return std::nullopt;
  Product product = product_of(graph, root);
  if (product.factors.size() != 2 || !is_near(product.scale, 0.5)) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    const Node* sum = graph.producer(product.factors[place], "Add");
    const std::string* rest = sum == nullptr ? nullptr : input_beside(graph, *sum, 1.0);
    const Node* node = rest == nullptr ? nullptr : graph.producer(*rest, function);
    if (node == nullptr || node->inputs.size() != 1) continue;
    product.inner.insert(product.inner.end(), {sum, node});
    return Halves{product.factors[1 - place], node, std::move(product.inner)};
  }
  return std::nullopt;
}

Match gelu(const Node& root, Halves halves, const std::string& approximate) {
  Match match{std::move(halves.inner), {node_like(root, "Gelu", 20, {halves.x})}};
  set_attribute(match.replacement.back(), "approximate", approximate);
  return match;
}

void take(std::vector<const Node*>& inner, const Node* node, const Product& product) {
  inner.push_back(node);
  inner.insert(inner.end(), product.inner.begin(), product.inner.end());
}

// The exponent of x in a product of x and Pow(x, n); 0 if there is any other factor.
double power_of(const PatternGraph& graph, const Product& product, const std::string& x,
                std::vector<const Node*>& inner) {
  double exponent = 0;
  for (const std::string& factor : product.factors) {
    const Node* power = graph.producer(factor, "Pow");
    if (factor == x) {
      exponent += 1;
    } else if (power != nullptr && power->inputs.size() == 2 && power->inputs[0] == x &&
               graph.scalar(power->inputs[1])) {
      exponent += *graph.scalar(power->inputs[1]);
      inner.push_back(power);
    } else {
      return 0;
    }
  }
  return exponent;
}

// Whether `name` is 0.044715 * x^exponent.
bool is_power_term(const PatternGraph& graph, const std::string& name, const std::string& x,
                   double exponent, std::vector<const Node*>& inner) {
  const Node* node = graph.producer(name, "Mul");
  if (node == nullptr) return false;
  const Product product = product_of(graph, *node);
  if (!is_near(product.scale, kCubeFactor)) return false;
  take(inner, node, product);
  return power_of(graph, product, x, inner) == exponent;
}

// sqrt(2 / pi) * (x + 0.044715 * x^3), or sqrt(2 / pi) * x * (1 + 0.044715 * x^2).
bool is_tanh_argument(const PatternGraph& graph, const std::string& name, const std::string& x,
                      std::vector<const Node*>& inner) {
  const Node* node = graph.producer(name);
  if (node == nullptr) return false;
  Product product = product_of(graph, *node);
  if (!is_near(product.scale, kRootOfTwoOverPi)) return false;
  take(inner, node, product);
  const auto at = std::find(product.factors.begin(), product.factors.end(), x);
  const bool has_x = at != product.factors.end();
  if (has_x) product.factors.erase(at);
  if (product.factors.size() != 1) return false;
  const Node* sum = graph.producer(product.factors.front(), "Add");
  if (sum == nullptr) return false;
  inner.push_back(sum);
  const std::string* term = has_x ? input_beside(graph, *sum, 1.0) : other_input(*sum, x);
  return term != nullptr && is_power_term(graph, *term, x, has_x ? 2 : 3, inner);
}

}  // namespace

std::optional<Match> match_gelu(const PatternGraph& graph, const Node& root) {
  std::optional<Halves> halves = match_halves(graph, root, "Erf");
  if (!halves) return std::nullopt;
  const Node* scaled = graph.producer(halves->function->inputs.front());
  if (scaled == nullptr) return std::nullopt;
  const Product product = product_of(graph, *scaled);
  const bool matches =
      product.factors == std::vector{halves->x} && is_near(product.scale, kRootOfHalf);
  if (!matches) return std::nullopt;
  take(halves->inner, scaled, product);
  return gelu(root, std::move(*halves), "none");
}

std::optional<Match> match_tanh_gelu(const PatternGraph& graph, const Node& root) {
  std::optional<Halves> halves = match_halves(graph, root, "Tanh");
  if (!halves) return std::nullopt;
  const std::string& argument = halves->function->inputs.front();
  if (!is_tanh_argument(graph, argument, halves->x, halves->inner)) return std::nullopt;
  return gelu(root, std::move(*halves), "tanh");
}

}  // namespace decent::onnx
