#pragma once
// Questions about forward that its forward_graph() answers; internal to this room.

#include <torch/csrc/jit/ir/ir.h>

#include <set>
#include <string>
#include <vector>

namespace decent {

/// See Model::fixed_mode_operators.
std::vector<std::string> find_fixed_mode_operators(const torch::jit::Graph& forward);

/// Modules whose train/eval switch forward reads, by name, if the name can be told: "layer1.bn", ""
/// for the whole.
std::set<std::string> modules_whose_mode_is_read(const torch::jit::Graph& forward);

/// Whether forward reads tensors through .data, which autograd does not track.
bool reads_data_of_tensors(const torch::jit::Graph& forward);

/// Operators of forward that create tensors on the CPU wherever the model is: those that are told
/// the device 'cpu', and those that take no tensor and are told no device. E.g. "2 x arange".
std::vector<std::string> find_cpu_operators(const torch::jit::Graph& forward);

/// Operators of forward that are told to create a tensor on a GPU, as with device='cuda'. E.g. "1 x
/// zeros".
std::vector<std::string> find_gpu_operators(const torch::jit::Graph& forward);

/// Whether forward returns one tensor, which is the output of a sigmoid, perhaps in another shape.
bool ends_in_sigmoid(const torch::jit::Graph& forward);

}  // namespace decent
