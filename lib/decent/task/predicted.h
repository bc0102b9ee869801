#pragma once
// Predictions from the outputs of a model, without a target.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "decent/data/transforms/normalize.h"
#include "decent/task/task.h"
#include "decent/task/trial.h"

namespace decent {

/// Contiguous, on the CPU. For a loss of classes, class and probability have the output's shape
/// without the dimension of the classes; for events, the output's shape; else they are undefined.
struct Predicted {
  at::Tensor output = {};   // float32 [samples, ..], of numbers in the data's units
  at::Tensor classes = {};  // int64: the most probable class, the first of equals; an event: 0 or 1
  at::Tensor probability = {};  // float32: of that class; of an event: that it happens
};

class OutputReader {
 public:
  /// `are_probabilities`: the output already went through the loss's softmax or sigmoid. `task`
  /// must outlive the reader.
  OutputReader(const Task& task, bool are_probabilities);

  /// Reads one batch of `samples` samples. Throws UserError if the output does not fit the loss.
  Predicted read(const at::Tensor& output, std::int64_t samples) const;

  /// The number of classes in the output; 0 if it has no classes. Throws UserError.
  std::int64_t classes_of(const at::Tensor& output) const;

 private:
  void check(const at::Tensor& output, std::int64_t samples) const;
  std::int64_t class_dim(const at::Tensor& output) const;
  Predicted of_classes(const at::Tensor& output) const;
  Predicted of_events(const at::Tensor& output) const;

  const Task& task_;
  bool are_probabilities_;
  std::vector<Normalization> scalings_;  // for a target of numbers
};

/// Whether the model's output is probabilities and not logits.
bool gives_probabilities(const Task& task, const Trial& trial);

}  // namespace decent
