#pragma once
// Groups of nodes that exporters write for one function of PyTorch, put back together: then the
// gradient is that function's own.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Domain of nodes that stand for functions which ONNX does not have (ops_patterns.cpp).
inline constexpr std::string_view kPatternDomain = "decent.pattern";

/// Random numbers that a file has for a dropout or for stochastic depth, which inference leaves
/// out: Div(Cast(Less(random, keep)), keep). Where its nodes lie in the file.
struct RandomMask {
  ByteRange division;             // its outcome is the mask
  ByteRange cast;                 // gives it its type
  ByteRange random;               // reads a tensor of its shape
  std::vector<ByteRange> others;  // that nothing else reads
};

/// Replaces patterns in `graph` and in the graphs inside it, where the result is the same but for
/// rounding. Nodes and tensors that are in no pattern stay as they are. `opset` is the model's.
/// Gives what was recognised, with how often: "layer norm" -> 12. `masks` is added to.
std::map<std::string, std::size_t> recognise_patterns(Graph& graph, std::int64_t opset,
                                                      std::vector<RandomMask>* masks = nullptr);

/// For files of tf2onnx: where the second bias of an LSTM, GRU or RNN is zeros that stand for none,
/// a node before the layer keeps gradients from it. Gives the number of such layers.
std::size_t hold_second_biases(Graph& graph);

}  // namespace decent::onnx
