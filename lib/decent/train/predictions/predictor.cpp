#include "decent/train/predictions/predictor.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "decent/comm/gather.h"
#include "decent/core/error.h"
#include "decent/task/device.h"
#include "decent/task/passes.h"
#include "decent/task/random.h"

namespace decent {
namespace {

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.reshape({-1}).view(at::kByte); }

// Takes the elements of a tensor from the front of `bytes`. They are copied, since elements of
// 8 bytes may begin anywhere.
at::Tensor taken(at::Tensor& bytes, const std::vector<std::int64_t>& shape, at::ScalarType type) {
  const at::Tensor tensor = at::empty(shape, type);
  const at::Tensor into = bytes_of(tensor);
  into.copy_(bytes.narrow(0, 0, into.numel()));
  bytes = bytes.narrow(0, into.numel(), bytes.numel() - into.numel());
  return tensor;
}

PredictionHeader header_of(const Predicted& predicted) {
  PredictionHeader header{.shape = predicted.output.sizes().vec()};
  if (predicted.classes.defined()) header.class_shape = predicted.classes.sizes().vec();
  return header;
}

// uint8 [bytes]: output, class and probability one after another.
at::Tensor packed(const Predicted& predicted) {
  if (!predicted.classes.defined()) return bytes_of(predicted.output);
  return at::cat(
      {bytes_of(predicted.output), bytes_of(predicted.classes), bytes_of(predicted.probability)});
}

std::int64_t packed_bytes(const PredictionHeader& header) {
  const std::int64_t of_class = sizeof(std::int64_t) + sizeof(float);
  return count_of(header.shape) * static_cast<std::int64_t>(sizeof(float)) +
         count_of(header.class_shape) * of_class;
}

// The predictions again, in the memory of `bytes`.
Predicted unpacked(const PredictionHeader& header, const at::Tensor& bytes) {
  at::Tensor left = bytes;
  Predicted predicted{.output = taken(left, header.shape, at::kFloat)};
  if (header.class_shape.empty()) return predicted;
  predicted.classes = taken(left, header.class_shape, at::kLong);
  predicted.probability = taken(left, header.class_shape, at::kFloat);
  return predicted;
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PredictionHeader, shape, class_shape, left_out)

namespace {

constexpr int kTag = 0;

template <class T>
BatchColumn<T> column_of(const at::Tensor& tensor) {
  return {.shape = tensor.sizes().vec(),
          .values = {tensor.const_data_ptr<T>(), static_cast<std::size_t>(tensor.numel())}};
}

// Adds the file and row of each sample, if they say more than its number does.
void add_origins(const Source& source, PredictionBatch& batch) {
  const std::int64_t last = source.size() - 1;
  const SampleOrigin origin = source.origin_of(last);
  const bool has_rows = origin.row && *origin.row != last;
  for (const std::int64_t row : batch.rows) {
    const SampleOrigin each = source.origin_of(row);
    if (!origin.file.empty()) batch.files.push_back(each.file);
    if (has_rows) batch.file_rows.push_back(each.row.value());
  }
}

}  // namespace

struct Predictor::OwnBatch {
  PredictionHeader header;
  std::optional<Predicted> predicted;  // none if all samples are left out
};

Predictor::Predictor(Task& task, Team team, bool are_probabilities)
    : task_(task),
      data_(*task.predict),
      reader_(task, are_probabilities),
      team_(std::move(team)),
      batch_size_(task.recipe.data.eval_batch_size),
      batch_count_((data_.size() + batch_size_ - 1) / batch_size_) {}

std::vector<std::int64_t> Predictor::samples_of(std::int64_t number) const {
  const std::int64_t first = number * batch_size_;
  std::vector<std::int64_t> samples(
      static_cast<std::size_t>(std::min(batch_size_, data_.size() - first)));
  std::iota(samples.begin(), samples.end(), first);
  return samples;
}

PredictionCounts Predictor::run(PredictionFile* file) {
  const at::NoGradGuard no_grad;
  Model& model = *task_.model;
  std::optional<MergedAdapters> merged;
  if (model.adapters() != nullptr)
    team_.agree("adapters", [&] { merged.emplace(model.adapters()); });
  const bool gives_logits = model.gives_logits();
  if (gives_logits) model.give_logits(false);
  model.eval();
  team_.control().report(Operation::predicting);
  const std::int64_t workers = team_.size();
  const std::int64_t place = team_.place();
  const std::int64_t own = (batch_count_ - place + workers - 1) / workers;
  Prefetcher batches(
      [&](std::int64_t turn) {
        return data_.read(samples_of(turn * workers + place), /*epoch=*/0,
                          host_memory_for(model.device()));
      },
      0, own, static_cast<std::size_t>(task_.recipe.data.prefetch),
      static_cast<std::size_t>(task_.recipe.data.threads), thread_start_for(model.device()));
  counts_ = {};
  for (std::int64_t first = 0; first < batch_count_; first += workers)
    run_round(first, batches, file);
  team_.agree("predictions", [&] {
    if (failed_write_) std::rethrow_exception(failed_write_);
    if (file != nullptr) file->finish();
  });
  if (gives_logits) model.give_logits(true);
  model.train();
  return counts_;
}

// Predicts the batches first, first + 1, .., one on each worker.
void Predictor::run_round(std::int64_t first, Prefetcher& batches, PredictionFile* file) {
  OwnBatch own;
  const std::vector<PredictionHeader> headers = team_.agree("predicted", [&] {
    if (failed_write_) std::rethrow_exception(failed_write_);
    team_.control().progress();
    if (!batches.done()) own = predict(first + team_.place(), batches.next());
    return own.header;
  });
  if (!team_.speaks()) {
    if (own.predicted) send(*own.predicted);
    return;
  }
  std::vector<std::optional<Predicted>> all = receive(headers);
  all[0] = std::move(own.predicted);
  try {
    for (std::size_t peer = 0; peer < all.size(); ++peer) {
      if (all[peer])
        write(first + static_cast<std::int64_t>(peer), headers[peer].left_out, *all[peer], *file);
    }
  } catch (const Error&) {
    failed_write_ = std::current_exception();
  }
}

// Sends to the worker that writes. Both sides of an exchange must send; that worker sends nothing.
void Predictor::send(const Predicted& predicted) {
  const at::Tensor bytes = packed(predicted);
  const at::Tensor nothing = at::empty_like(bytes);
  team_.communicator()->exchange(bytes, nothing, Team::kSpeaker, kTag)->wait();
}

// Receives predictions, by place; none from this worker itself and from workers without samples.
std::vector<std::optional<Predicted>> Predictor::receive(
    const std::vector<PredictionHeader>& headers) {
  std::vector<at::Tensor> received(headers.size());
  std::vector<at::Tensor> sent(headers.size());
  std::vector<Pending> pending;
  for (std::size_t peer = 1; peer < headers.size(); ++peer) {
    if (headers[peer].shape.empty()) continue;
    received[peer] = at::empty({packed_bytes(headers[peer])}, at::kByte);
    sent[peer] = at::zeros_like(received[peer]);
    pending.push_back(
        team_.communicator()->exchange(sent[peer], received[peer], static_cast<int>(peer), kTag));
  }
  for (const Pending& each : pending) each->wait();
  std::vector<std::optional<Predicted>> all(headers.size());
  for (std::size_t peer = 1; peer < headers.size(); ++peer)
    if (received[peer].defined()) all[peer] = unpacked(headers[peer], received[peer]);
  return all;
}

Predictor::OwnBatch Predictor::predict(std::int64_t number, Batch read) {
  OwnBatch own;
  if (data_.left_out) {
    for (const std::int64_t sample : samples_of(number))
      if (data_.left_out->contains(sample)) own.header.left_out.push_back(sample);
  }
  if (read.empty()) return own;
  Model& model = *task_.model;
  // The seed does not depend on the worker that has the batch.
  seed_generator(static_cast<std::uint64_t>(task_.recipe.seed), /*rank=*/0, number,
                 RandomStream::evaluation, model.device());
  const DeviceBatch batch(std::move(read), model.device());
  const Prediction prediction = decent::predict(model, task_.inputs, task_.criterion, data_, batch);
  own.predicted = reader_.read(prediction.output, batch.read().samples());
  model.settle_buffers();
  std::vector<std::int64_t> left_out = std::move(own.header.left_out);
  own.header = header_of(*own.predicted);
  own.header.left_out = std::move(left_out);
  return own;
}

void Predictor::count_not_finite(const at::Tensor& output, const std::vector<std::int64_t>& rows) {
  const at::Tensor finite = at::isfinite(output);
  if (at::all(finite).item<bool>()) return;
  const at::Tensor of_samples = finite.reshape({finite.size(0), -1}).all(1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (of_samples.const_data_ptr<bool>()[i]) continue;
    if (counts_.not_finite++ == 0) counts_.first_not_finite = rows[i];
  }
}

void Predictor::write(std::int64_t number, const std::vector<std::int64_t>& left_out,
                      const Predicted& predicted, PredictionFile& file) {
  PredictionBatch batch{.rows = samples_of(number),
                        .files = {},
                        .file_rows = {},
                        .output = column_of<float>(predicted.output)};
  std::erase_if(batch.rows, [&](std::int64_t sample) {
    return std::find(left_out.begin(), left_out.end(), sample) != left_out.end();
  });
  add_origins(data_.samples->source(), batch);
  counts_.samples += std::ssize(batch.rows);
  count_not_finite(predicted.output, batch.rows);
  if (predicted.classes.defined()) {
    batch.classes = column_of<std::int64_t>(predicted.classes);
    batch.probability = column_of<float>(predicted.probability);
    if (task_.criterion.has_classes() && predicted.classes.dim() == 1)
      for (const std::int64_t each : batch.classes->values) ++counts_.of_classes[each];
  }
  file.add(batch);
}

}  // namespace decent
