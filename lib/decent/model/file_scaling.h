#pragma once
// What a written TorchScript file computes besides the model: data.export_transforms.

#include <torch/csrc/jit/api/module.h>

#include <cstddef>
#include <vector>

namespace decent {

class Model;

/// (x - mean) / std in float32, as in the transform `normalize`: with one number, or one for each
/// index of dimension 1 of a batch.
struct Scaling {
  std::vector<double> mean;
  std::vector<double> std;
};

/// Scalings of an argument of forward, in the order in which they are applied.
struct ScaledArgument {
  std::size_t place = 0;  // among forward's arguments, without self
  std::vector<Scaling> scalings;
};

struct FileScaling {
  std::vector<ScaledArgument> arguments = {};
  std::vector<Scaling> output = {};  // of forward's result; undone, the last one first

  bool empty() const { return arguments.empty() && output.empty(); }
};

/// Throws UserError if an argument or forward's result is not a tensor.
void check_scaling(const Model& model, const FileScaling& scaling);

/// Makes the scalings the first and last operations of forward. The module must have passed
/// check_scaling and must not have run yet.
void add_scaling(torch::jit::Module& module, const FileScaling& scaling);

}  // namespace decent
