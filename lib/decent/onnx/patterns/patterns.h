#pragma once
// Replaces groups of nodes that exporters write for one function of PyTorch by that function, so
// that its own gradient is used.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// The domain of nodes for functions that ONNX does not have (operators/patterns.cpp).
inline constexpr std::string_view kPatternDomain = "decent.pattern";

/// Random numbers for a dropout or for stochastic depth, which inference leaves out:
/// Div(Cast(Less(random, keep)), keep). Holds the places of its nodes in the file.
struct RandomMask {
  ByteRange division;             // its result is the mask
  ByteRange cast;                 // gives it its type
  ByteRange random;               // reads a tensor of its shape
  std::vector<ByteRange> others;  // that nothing else reads
};

/// Replaces patterns in `graph` and in the graphs inside it if the result is the same except for
/// rounding. Nodes and tensors that are in no pattern stay as they are. `opset` is the model's.
/// Returns how often each pattern was recognised: "layer norm" -> 12. Appends to `masks`.
std::map<std::string, std::size_t> recognise_patterns(Graph& graph, std::int64_t opset,
                                                      std::vector<RandomMask>* masks = nullptr);

/// For files of tf2onnx: if the second bias of an LSTM, GRU or RNN is zeros because the layer has
/// none, a node before the layer keeps gradients from it. Returns the number of such layers.
std::size_t hold_second_biases(Graph& graph);

}  // namespace decent::onnx
