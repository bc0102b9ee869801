#include "decent/train/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include "decent/data/prefetcher.h"
#include "decent/data/sampler.h"
#include "decent/train/random.h"

namespace decent {

Evaluator::Evaluator(const Recipe& recipe, TorchScriptModel& model, const DataSet& data,
                     std::span<const ForwardInput> inputs, std::shared_ptr<Communicator> world)
    : recipe_(recipe),
      model_(model),
      data_(data),
      inputs_(inputs),
      world_(std::move(world)),
      criterion_(recipe.model.loss) {}

Evaluation Evaluator::evaluate(std::int64_t step) {
  seed_generator(static_cast<std::uint64_t>(recipe_.seed), world_->rank(), step,
                 RandomStream::evaluation);
  const at::NoGradGuard no_grad;
  model_.module().eval();
  const EvaluationSums own = evaluate_own_part();
  model_.module().train();

  const at::Tensor total =
      at::tensor({own.loss, own.elements, own.correct, own.labels}, at::kDouble);
  world_->all_reduce_sum(total)->wait();
  const double* sums = total.const_data_ptr<double>();
  Evaluation result{
      .loss = sums[0] / sums[1], .accuracy = std::nullopt, .samples = data_.source->size()};
  if (criterion_.classifies()) result.accuracy = sums[2] / sums[3];
  return result;
}

EvaluationSums Evaluator::evaluate_own_part() {
  const std::int64_t samples = data_.source->size();
  const std::int64_t batch_size = recipe_.data.eval_batch_size;
  const std::int64_t own = evaluation_size(samples, world_->size(), world_->rank());
  Prefetcher batches(
      [&](std::int64_t number) {
        return read_batch(*data_.source, data_.fields,
                          evaluation_indices(samples, world_->size(), world_->rank(),
                                             number * batch_size, batch_size));
      },
      0, (own + batch_size - 1) / batch_size, static_cast<std::size_t>(recipe_.data.prefetch));
  EvaluationSums sums;
  while (!batches.done()) {
    const Batch batch = batches.next();
    const at::Tensor output =
        model_.forward(inputs_, std::span(batch.fields).first(inputs_.size()));
    sums += criterion_.evaluate(output, batch.fields.back());
    model_.settle_buffers();
  }
  return sums;
}

}  // namespace decent
