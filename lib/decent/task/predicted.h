#pragma once
// What the outputs of a model say of samples, without a target.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "decent/data/transforms/normalize.h"
#include "decent/task/task.h"
#include "decent/task/trial.h"

namespace decent {

/// Contiguous, on the CPU. Of a loss of classes, class and probability have the output's shape
/// without the dimension of the classes; of events, the output's shape; else they are undefined.
struct Predicted {
  at::Tensor output = {};   // float32 [samples, ..], of numbers in the data's units
  at::Tensor classes = {};  // int64: the most probable class, the first of equals; an event: 0 or 1
  at::Tensor probability = {};  // float32: of that class; of an event: that it happens
};

class OutputReader {
 public:
  /// `are_probabilities`: the output is what the loss's softmax or sigmoid would give. `task` must
  /// outlive the reader.
  OutputReader(const Task& task, bool are_probabilities);

  /// Of one batch of that many samples. Throws UserError where the output does not fit the loss.
  Predicted read(const at::Tensor& output, std::int64_t samples) const;

  /// How many classes the output tells apart; 0 where it is not of classes. Throws UserError.
  std::int64_t classes_of(const at::Tensor& output) const;

 private:
  void check(const at::Tensor& output, std::int64_t samples) const;
  std::int64_t class_dim(const at::Tensor& output) const;
  Predicted of_classes(const at::Tensor& output) const;
  Predicted of_events(const at::Tensor& output) const;

  const Task& task_;
  bool are_probabilities_;
  std::vector<Normalization> scalings_;  // of a target of numbers
};

/// Whether the model, where it gives no logits in place of them, gives probabilities itself.
bool gives_probabilities(const Task& task, const Trial& trial);

}  // namespace decent
