// Attention as one operator.

#include "decent/core/script_text.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

constexpr std::size_t kMask = 3;
constexpr std::size_t kPastKey = 4;
constexpr std::size_t kPastValue = 5;
constexpr std::size_t kLengths = 6;  // of the keys that are not padding

// Inputs 0 to 2 as [batch, heads, time, size].
struct Heads {
  bool flat = false;         // in the file they are [batch, time, heads * size]
  std::int64_t queries = 0;  // heads; 0 if the tensors tell
  std::int64_t keys = 0;
  std::string q, k, v;
};

std::string split_heads(NodeContext& c, std::size_t input, const char* hint, std::int64_t heads) {
  const Expression split = method(c.tensor(input), "unflatten", 2, list(heads, -1));
  return c.variable(hint, method(split, "transpose", 1, 2));
}

Heads heads_of(NodeContext& c) {
  Heads heads;
  heads.queries = c.int_or("q_num_heads", 0);
  heads.keys = c.int_or("kv_num_heads", 0);
  heads.flat = c.rank(0) ? c.rank(0) == 3 : heads.queries != 0;
  if (c.type(0) != c.type(1) || c.type(0) != c.type(2))
    throw Unsupported("has queries, keys and values of different element types");
  if (!heads.flat) {
    heads.q = c.tensor(0);
    heads.k = c.tensor(1);
    heads.v = c.tensor(2);
    return heads;
  }
  if (heads.queries <= 0 || heads.keys <= 0)
    throw Unsupported("has inputs of rank 3 without q_num_heads and kv_num_heads");
  heads.q = split_heads(c, 0, "query", heads.queries);
  heads.k = split_heads(c, 1, "key", heads.keys);
  heads.v = split_heads(c, 2, "value", heads.keys);
  return heads;
}

// Puts the past's keys and values before the new ones.
void add_past(NodeContext& c, Heads& heads) {
  if (c.has(kPastKey) != c.has(kPastValue))
    throw Unsupported("has only one of past_key and past_value");
  if (c.has(kPastKey)) {
    if (c.has(kLengths)) throw Unsupported("has both past_key and nonpad_kv_seqlen");
    heads.k = c.variable("key", call("torch.cat", list(c.tensor(kPastKey), heads.k), 2));
    heads.v = c.variable("value", call("torch.cat", list(c.tensor(kPastValue), heads.v), 2));
  }
  c.set(1, heads.k, c.type(1), 4);
  c.set(2, heads.v, c.type(2), 4);
}

// The mask as the file has it, or "None".
Expression given_mask(NodeContext& c) {
  if (!c.has(kMask)) return "None";
  const ElementType type = c.type(kMask);
  if (type == ElementType::boolean || type == c.type(0)) return c.tensor(kMask);
  return method(c.tensor(kMask), "to", c.dtype(c.type(0)));
}

bool has_window(NodeContext& c) {
  return c.int_or("left_window_size", -1) >= 0 || c.int_or("right_window_size", -1) >= 0;
}

bool is_causal(NodeContext& c) { return c.int_or("is_causal", 0) != 0; }

// The mask combined with everything else that keeps a query from seeing a key, or "None".
Expression whole_mask(NodeContext& c, const Heads& heads) {
  const bool may_be_short = c.has(kMask) && c.opset() >= 24;
  if (!is_causal(c) && !has_window(c) && !c.has(kLengths) && !may_be_short) return given_mask(c);
  const Expression past = c.has(kPastKey) ? method(c.tensor(kPastKey), "size", 2) : 0;
  return c.variable(
      "mask", call(c.helper("_attention_mask"), given_mask(c), heads.q, heads.k, past,
                   optional_tensor(c, kLengths), is_causal(c), c.int_or("left_window_size", -1),
                   c.int_or("right_window_size", -1)));
}

ElementType softmax_type(NodeContext& c) {
  const ElementType type = c.type_attribute("softmax_precision", c.type(0));
  if (!is_floating(type)) throw Unsupported("has softmax_precision " + name_of(type));
  return type;
}

// Whether PyTorch's function means the same. It computes the softmax of half types in float32.
bool is_scaled_dot_product(NodeContext& c) {
  const ElementType precision = softmax_type(c);
  const bool same_softmax =
      precision == c.type(0) || (is_half(c.type(0)) && precision == ElementType::float32);
  return same_softmax && !c.wants(3) && c.float_or("softcap", 0) == 0;
}

Arguments grouped(const Heads& heads) {
  if (heads.queries == 0) {
    const Expression differ = binary(method(heads.q, "size", 1), "!=", method(heads.k, "size", 1));
    return Arguments(keyword("enable_gqa", differ));
  }
  return heads.queries == heads.keys ? Arguments() : Arguments(keyword("enable_gqa", true));
}

Expression scaled_dot_product(NodeContext& c, const Heads& heads) {
  check_keys_and_values(c, heads.k, heads.v);
  const bool only_causal =
      is_causal(c) && !c.has(kMask) && !c.has(kPastKey) && !c.has(kLengths) && !has_window(c);
  Arguments arguments(heads.q, heads.k, heads.v);
  if (only_causal) {
    arguments.add(keyword("is_causal", true));
  } else if (const Expression mask = whole_mask(c, heads); mask.text() != "None") {
    arguments.add(mask);
  }
  if (c.has_attribute("scale")) arguments.add(keyword("scale", c.float_or("scale", 0)));
  return call("torch.scaled_dot_product_attention", arguments, grouped(heads));
}

// Writes out the operator's steps, and returns the variable of the output.
std::string written_out(NodeContext& c, const Heads& heads) {
  const std::int64_t shown = c.int_or("qk_matmul_output_mode", 0);
  if (shown < 0 || shown > 3)
    throw Unsupported("has qk_matmul_output_mode " + std::to_string(shown) +
                      "; the specification has 0 to 3");
  if (c.float_or("scale", 1) <= 0) throw Unsupported("has a scale that is not positive");
  const Expression mask = whole_mask(c, heads);
  const std::string output = c.fresh_name("attended");
  const std::string scores = c.declare(3, c.type(0), 4);
  c.assign(std::vector{output, scores},
           call(c.helper("_attention"), heads.q, heads.k, heads.v, mask, c.float_or("scale", 0),
                c.float_or("softcap", 0), shown, c.dtype(softmax_type(c))));
  return output;
}

void attention(NodeContext& c) {
  Heads heads = heads_of(c);
  add_past(c, heads);
  const Expression output =
      is_scaled_dot_product(c) ? scaled_dot_product(c, heads) : written_out(c, heads);
  if (!heads.flat) return c.set(0, output, c.type(0), 4);
  c.set(0, method(method(output, "transpose", 1, 2), "flatten", 2), c.type(0), 3);
}

void rotary_embedding(NodeContext& c) {
  const std::int64_t heads = c.int_or("num_heads", 0);
  if (c.rank(0).value_or(4) == 3 && heads <= 0)
    throw Unsupported("has an input of rank 3 without num_heads");
  c.set(0,
        call(c.helper("_rotary_embedding"), c.tensor(0), c.tensor(1), c.tensor(2),
             optional_tensor(c, 3), heads, c.int_or("rotary_embedding_dim", 0),
             c.int_or("interleaved", 0) != 0),
        c.type(0), c.rank(0));
}

void check_linear_attention(NodeContext& c, std::int64_t q_heads, std::int64_t kv_heads) {
  if (kv_heads <= 0 || q_heads <= 0 || q_heads % kv_heads != 0)
    throw Unsupported("needs q_num_heads to be a multiple of kv_num_heads");
  const std::string rule = c.string_or("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    throw Unsupported("has update_rule '" + rule + "', which the specification does not know");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (c.has(4) != gated || c.has(5) != delta)
    throw Unsupported("has other inputs decay and beta than its update_rule '" + rule + "' has");
}

void linear_attention(NodeContext& c) {
  const std::int64_t q_heads = c.int_or("q_num_heads", 0);
  const std::int64_t kv_heads = c.int_or("kv_num_heads", 0);
  check_linear_attention(c, q_heads, kv_heads);
  const ElementType computed = is_half(c.type(0)) ? ElementType::float32 : c.type(0);
  const std::string output = c.declare(0, c.type(0), 3);
  const std::string state = c.declare(1, c.has(3) ? c.type(3) : c.type(0), 4);
  c.assign(std::vector{output, state},
           call(c.helper("_linear_attention"), c.tensor(0), c.tensor(1), c.tensor(2),
                optional_tensor(c, 3), optional_tensor(c, 4), optional_tensor(c, 5), kv_heads,
                q_heads / kv_heads, c.float_or("scale", 0), c.dtype(computed)));
}

// A depthwise convolution over the past and the input.
void causal_convolution(NodeContext& c) {
  const std::string activation = c.string_or("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    throw Unsupported("has activation '" + activation +
                      "'; the specification has none, silu and swish");
  const Expression x = c.tensor(0);
  const Expression weight = c.tensor(1);
  const Expression before = binary(method(weight, "size", 2), "-", 1);
  const Expression padded =
      c.variable("padded", c.has(3) ? call("torch.cat", list(c.tensor(3), x), 2)
                                    : call("torch.constant_pad_nd", x, list(before, 0)));
  const Expression convolved = call("torch.conv1d", padded, weight, optional_tensor(c, 2),
                                    keyword("groups", method(weight, "size", 0)));
  c.set(0, activation == "none" ? convolved : call("torch.silu", convolved), c.type(0), 3);
  c.set(1, method(padded, "narrow", 2, method(x, "size", 2), before), c.type(0), 3);
}

constexpr Operator kAttentionOperators[] = {
    {"Attention", 23, attention},
    {"CausalConvWithState", 27, causal_convolution},
    {"LinearAttention", 27, linear_attention},
    {"RotaryEmbedding", 23, rotary_embedding, Folding::broadcast},
};

}  // namespace

std::span<const Operator> attention_operators() { return kAttentionOperators; }

}  // namespace decent::onnx
