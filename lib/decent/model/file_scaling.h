#pragma once
// What a written TorchScript file computes beside the model: data.export_transforms.

#include <torch/csrc/jit/api/module.h>

#include <cstddef>
#include <vector>

namespace decent {

class Model;

/// (x - mean) / std in float32, as the transform `normalize`: with one number, or one for each
/// place of dimension 1 of a batch.
struct Scaling {
  std::vector<double> mean;
  std::vector<double> std;
};

/// Scalings of an argument of forward, in the order in which they act.
struct ScaledArgument {
  std::size_t place = 0;  // among forward's arguments, without self
  std::vector<Scaling> scalings;
};

struct FileScaling {
  std::vector<ScaledArgument> arguments = {};
  std::vector<Scaling> output = {};  // of what forward returns; undone, the last one first

  bool empty() const { return arguments.empty() && output.empty(); }
};

/// Throws UserError where an argument or what forward returns is no tensor.
void check_scaling(const Model& model, const FileScaling& scaling);

/// Makes the scalings the first and last operations of forward, in a module that nothing has run
/// yet and that check_scaling has found fit.
void add_scaling(torch::jit::Module& module, const FileScaling& scaling);

}  // namespace decent
