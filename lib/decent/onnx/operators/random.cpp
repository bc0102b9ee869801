// Operators that draw random numbers. They always use PyTorch's generator, which the trainer seeds
// for every step, because the seeds in files would give every step and every worker the same
// numbers.

#include "decent/onnx/format/elements.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/translation.h"

namespace decent::onnx {
namespace {

Expression dropout_ratio(NodeContext& c) {
  if (c.opset() < 12) return c.float_or("ratio", 0.5);
  if (!c.has(1)) return 0.5;
  const auto known = c.known_scalar(1);
  if (known) return as_written(static_cast<float>(*known));
  return c.float_scalar(1);
}

// The file's training_mode only says how it was exported; the trainer's switch decides.
void dropout(NodeContext& c) {
  const Arguments arguments(c.tensor(0), dropout_ratio(c), "self.training");
  if (!c.wants(1)) return c.set(0, call("torch.dropout", arguments), c.type(0), c.rank(0));
  const std::string output = c.declare(0, c.type(0), c.rank(0));
  const std::string mask = c.declare(1, ElementType::boolean, c.rank(0));
  c.assign(std::vector{output, mask}, call("torch.native_dropout", arguments));
}

void note_randomness(NodeContext& c) { c.note(kDrawsInEvaluation); }

ElementType drawn_type(NodeContext& c, ElementType otherwise) {
  const ElementType type = c.type_attribute("dtype", otherwise);
  if (!is_floating(type)) throw Unsupported("draws real numbers as " + name_of(type));
  return type;
}

// low + (high - low) * uniform, or mean + scale * normal, without terms that change nothing.
Expression spread(Expression drawn, double factor, double offset) {
  if (factor != 1) drawn = binary(drawn, "*", factor);
  if (offset != 0) drawn = binary(drawn, "+", offset);
  return drawn;
}

Expression uniform(NodeContext& c, const Expression& drawn) {
  const double low = c.float_or("low", 0);
  return spread(drawn, c.float_or("high", 1) - low, low);
}

Expression normal(NodeContext& c, const Expression& drawn) {
  return spread(drawn, c.float_or("scale", 1), c.float_or("mean", 0));
}

using Spread = Expression (*)(NodeContext&, const Expression&);

void random_like(NodeContext& c, const std::string& function, Spread spread_out) {
  note_randomness(c);
  const ElementType type = drawn_type(c, c.type(0));
  const Expression drawn = call(function, c.tensor(0), keyword("dtype", c.dtype(type)));
  c.set(0, spread_out(c, drawn), type, c.rank(0));
}

void random_of_shape(NodeContext& c, const std::string& function, Spread spread_out) {
  note_randomness(c);
  const auto shape = c.ints("shape");
  if (!shape) throw Unsupported("lacks its attribute 'shape'");
  const ElementType type = drawn_type(c, ElementType::float32);
  const Expression drawn =
      call(function, list(*shape), keyword("dtype", c.dtype(type)), keyword("device", c.device()));
  c.set(0, spread_out(c, drawn), type, static_cast<std::int64_t>(shape->size()));
}

void random_uniform_like(NodeContext& c) { random_like(c, "torch.rand_like", uniform); }
void random_normal_like(NodeContext& c) { random_like(c, "torch.randn_like", normal); }
void random_uniform(NodeContext& c) { random_of_shape(c, "torch.rand", uniform); }
void random_normal(NodeContext& c) { random_of_shape(c, "torch.randn", normal); }

void bernoulli(NodeContext& c) {
  note_randomness(c);
  const ElementType type = c.type_attribute("dtype", c.type(0));
  const Expression drawn = call("torch.bernoulli", c.tensor(0));
  c.set(0, type == c.type(0) ? drawn : method(drawn, "to", c.dtype(type)), type, c.rank(0));
}

void multinomial(NodeContext& c) {
  note_randomness(c);
  const ElementType type = c.type_attribute("dtype", ElementType::int32);
  const bool replacement = true;
  const Expression drawn = call("torch.multinomial", call("torch.softmax", c.tensor(0), 1),
                                c.int_or("sample_size", 1), replacement);
  c.set(0, type == ElementType::int64 ? drawn : method(drawn, "to", c.dtype(type)), type, 2);
}

constexpr Operator kRandomOperators[] = {
    {"Bernoulli", 15, bernoulli, Folding::never, Gradient::stops},
    {"Dropout", 7, dropout},
    {"Multinomial", 7, multinomial, Folding::never, Gradient::stops},
    {"RandomNormal", 1, random_normal, Folding::never, Gradient::stops},
    {"RandomNormalLike", 1, random_normal_like, Folding::never, Gradient::stops},
    {"RandomUniform", 1, random_uniform, Folding::never, Gradient::stops},
    {"RandomUniformLike", 1, random_uniform_like, Folding::never, Gradient::stops},
};

}  // namespace

std::span<const Operator> random_operators() { return kRandomOperators; }

}  // namespace decent::onnx
