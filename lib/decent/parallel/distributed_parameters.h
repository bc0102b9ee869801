#pragma once
// Data-parallel training of named parameters by averaged gradients, as PyTorch's
// DistributedDataParallel does it: all workers hold the same weights, bit for bit, and each update
// uses the mean of all workers' gradients.
//
// Everything happens inside backward(). Hooks on the parameters count the missing gradients of each
// bucket. A complete bucket's all-reduce starts at once, and nobody waits for it: buckets whose
// mean gradients have come are updated in the hooks that follow, and the others at the end of
// backward(). step() only counts the updates; there is nothing to call.
//
// Without options.training.update, backward() ends with the mean gradients in .grad, for an
// optimizer of the caller's own:
//
//     decent::DistributedDataParallel model(net, workers.communicator());
//     torch::optim::AdamW optimizer(net->parameters(), 1e-3);
//     for (..) {
//       optimizer.zero_grad();
//       loss(model.forward(x), y).backward();
//       optimizer.step();
//     }
//
// A parameter that only some workers used in a step has a gradient of zero on the others. One that
// nobody used is not updated; without an update its .grad stays as it is.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "decent/parallel/trained_parameters.h"

namespace decent {

struct DistributedDataParallelOptions {
  TrainingOptions training = {};
  /// "fp32": gradients are sent as they are (of float64 parameters in float64); "bf16": rounded to
  /// bfloat16, in which they are also added up.
  std::string comm_dtype = "fp32";
  /// How much this worker's gradient counts in the mean. For losses that are means over batches of
  /// different sizes, N * B_p / (B_0 + .. + B_(N-1)) makes it the gradient of the whole batch; the
  /// weights of all workers must have the mean 1.
  double weight = 1;

  /// Throws UserError for options that are missing, out of range, or do not fit together.
  void check() const;
};

class DistributedParameters : public TrainedParameters {
 public:
  /// Takes over the parameters that require a gradient; they become views of flat buckets. Every
  /// worker gets rank 0's values of all parameters and buffers. Collective. Throws UserError for
  /// options that are missing or out of range, and for parameters that cannot be trained in place
  /// (see check_storage).
  DistributedParameters(const NamedTensors& parameters, const NamedTensors& buffers,
                        std::shared_ptr<Communicator> communicator,
                        DistributedDataParallelOptions options);
  ~DistributedParameters() override;

 private:
  struct Parts;

  void begin_step() override;
  void on_gradient(std::size_t parameter) override;
  void finish_step() override;

  bool updates() const { return options().update != nullptr; }
  void put(std::size_t bucket, std::size_t place);
  void start(std::size_t bucket);
  std::optional<BucketGradients> wait(std::size_t bucket);
  void measure_whole_gradient();
  void update_next();
  void give_gradients(std::size_t bucket, const BucketGradients& gradients);

  std::unique_ptr<Parts> parts_;
};

}  // namespace decent
