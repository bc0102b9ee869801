#include "decent/parallel/exchange/gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <utility>

#include "decent/comm/lost_workers.h"
#include "decent/core/error.h"
#include "decent/parallel/pending_work.h"

namespace decent {
namespace {

bool all_read_in_place(const Communicator& communicator) {
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (rank != communicator.rank() && !communicator.reads_in_place(rank)) return false;
  }
  return communicator.size() > 1;
}

// Adds to `slices` the parts of `whole` that lie in the parts of the sum.
void add_parts(const BucketSlice& whole, const std::vector<ReceivedPart>& parts,
               std::vector<BucketSlice>& slices) {
  for (const auto& [begin, values] : parts) {
    const std::int64_t from = std::max(whole.offset, begin);
    const std::int64_t to = std::min(whole.offset + whole.numel, begin + values.numel());
    if (from >= to) continue;
    BucketSlice part = whole;
    part.offset = from;
    part.numel = to - from;
    part.grad = static_cast<const std::uint8_t*>(values.const_data_ptr()) +
                (from - begin) * static_cast<std::int64_t>(values.element_size());
    slices.push_back(part);
  }
}

// Elements [begin, end) of the tensor that `parts` make up.
at::Tensor range_of(const std::vector<ReceivedPart>& parts, std::int64_t begin, std::int64_t end) {
  std::vector<at::Tensor> pieces;
  for (const auto& [first, values] : parts) {
    const std::int64_t from = std::max(begin, first);
    const std::int64_t to = std::min(end, first + values.numel());
    if (from < to) pieces.push_back(values.narrow(0, from - first, to - from));
  }
  return at::cat(pieces);
}

}  // namespace

GradientType gradient_type(const std::string& comm_dtype) {
  if (comm_dtype == "fp32") return GradientType::as_computed;
  if (comm_dtype == "bf16") return GradientType::bf16;
  throw UserError("comm_dtype is '" + comm_dtype + "': gradients are sent in fp32 or bf16");
}

// A ring all-reduce sends 2 (n - 1) / n of what it adds up. Two messages lie in shared memory.
ExchangeCosts gradient_costs(GradientType type, int workers) {
  const double n = workers;
  const double sent = 2 * (n - 1) / n;
  if (type == GradientType::as_computed) return {.sent = sent, .memory = 1, .memory_sharing = 2};
  return {.sent = sent / 2, .memory = 1.5, .memory_sharing = 2};
}

GradientExchange::GradientExchange(std::shared_ptr<Communicator> communicator,
                                   const Replica& replica, GradientType type, double weight,
                                   bool whole_parameters, std::shared_ptr<Trace> trace)
    : communicator_(std::move(communicator)),
      replica_(replica),
      type_(type),
      factor_(weight / communicator_->size()),
      whole_parameters_(whole_parameters),
      trace_(std::move(trace)),
      read_in_place_(all_read_in_place(*communicator_)),
      buckets_(replica.buckets().size()) {}

at::Tensor& GradientExchange::message(OfBucket& own) {
  return own.messages[read_in_place_ ? own.turn : 0];
}

// A worker that still reads the message before the last one has not sent its last one either, and
// this worker could not have finished the last step. So the wait here returns at once.
void GradientExchange::open(std::size_t bucket) {
  OfBucket& own = buckets_[bucket];
  const Bucket& of = replica_.buckets()[bucket];
  own.open = true;
  own.turn ^= 1;
  own.put.assign(of.parameters.size(), false);
  at::Tensor& memory = message(own);
  try {
    if (memory.defined()) return communicator_->wait_until_read(memory);
  } catch (const GivenUp&) {
    memory.reset();  // a lost worker may never have read it
  }
  const at::ScalarType type = type_ == GradientType::bf16 ? at::kBFloat16 : of.x.scalar_type();
  const auto numel = of.x.numel() + std::ssize(of.parameters);
  if (read_in_place_) {
    memory = communicator_->memory_to_send(numel * static_cast<std::int64_t>(at::elementSize(type)))
                 .view(type);
  } else {
    memory = at::empty({numel}, of.x.options().dtype(type));
  }
  memory.zero_();  // stays zero between parameters
}

at::Tensor GradientExchange::place_in(const at::Tensor& flat, std::size_t bucket,
                                      std::size_t place) const {
  const Bucket& of = replica_.buckets()[bucket];
  const at::Tensor& parameter = replica_.parameters()[of.parameters[place]].second;
  return flat.as_strided(parameter.sizes(), parameter.strides(),
                         flat.storage_offset() + of.offsets[place]);
}

void GradientExchange::put(std::size_t bucket, std::size_t place, const at::Tensor& gradient) {
  OfBucket& own = buckets_[bucket];
  if (!own.open) open(bucket);
  const auto& [name, parameter] =
      replica_.parameters()[replica_.buckets()[bucket].parameters[place]];
  check_dense(name, gradient);
  at::Tensor to = place_in(message(own), bucket, place);
  at::mul_out(to, gradient, at::scalar_tensor(factor_, at::kDouble));
  own.put[place] = true;
}

// Writes zeros for missing gradients, and marks which parameters have one.
void GradientExchange::mark_used(std::size_t bucket, const at::Tensor& sent) {
  const std::vector<bool>& put = buckets_[bucket].put;
  const at::Tensor marks = sent.narrow(0, replica_.buckets()[bucket].x.numel(), std::ssize(put));
  marks.fill_(1);
  for (std::size_t i = 0; i < put.size(); ++i) {
    if (put[i]) continue;
    place_in(sent, bucket, i).zero_();
    marks[static_cast<std::int64_t>(i)].zero_();
  }
}

void GradientExchange::start(std::size_t bucket) {
  OfBucket& own = buckets_[bucket];
  if (!own.open) open(bucket);
  const at::Tensor& sent = message(own);
  mark_used(bucket, sent);
  TraceSpan span(trace_.get(), exchange_lane(bucket), "all-reduce",
                 {.bucket = static_cast<std::int64_t>(bucket),
                  .bytes = static_cast<std::int64_t>(sent.nbytes())});
  try {
    own.sum = read_in_place_
                  ? communicator_->sum_views(sent, nullptr)
                  : std::make_shared<ReceivedInRoom>(sent, communicator_->all_reduce_sum(sent));
  } catch (const GivenUp&) {
    return;
  }
  own.pending = all_of({own.sum});
  if (span.recording()) own.pending = watched(std::move(own.pending), std::move(span));
}

bool GradientExchange::done(std::size_t bucket) {
  const Pending& pending = buckets_[bucket].pending;
  return !pending || pending->done();
}

std::optional<BucketGradients> GradientExchange::wait(std::size_t bucket,
                                                      const std::vector<BucketSlice>& slices) {
  OfBucket& own = buckets_[bucket];
  if (own.parts.empty() && !receive(bucket)) return std::nullopt;
  BucketGradients gradients{.slices = {}, .present = own.present};
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (own.present[i]) {
      add_parts(slices[i], own.parts, gradients.slices);
    } else {
      gradients.slices.push_back(slices[i]);
    }
  }
  return gradients;
}

// Returns false if the sum was given up.
bool GradientExchange::receive(std::size_t bucket) {
  OfBucket& own = buckets_[bucket];
  if (!own.pending) return false;
  try {
    own.pending->wait();
  } catch (const GivenUp&) {
    own.pending.reset();
    return false;
  }
  own.parts = own.sum->parts();
  own.present = used(bucket);
  const bool in_place = !whole_parameters_ || own.parts.size() == 1;
  if (type_ == GradientType::as_computed && in_place) return true;
  join_parts(bucket);
  own.parts = {{.begin = 0, .values = own.gradients}};
  return true;
}

// A parameter of which this worker has a gradient was used. For others the sum must be read, which
// waits for a GPU.
std::vector<bool> GradientExchange::used(std::size_t bucket) const {
  const OfBucket& own = buckets_[bucket];
  if (std::find(own.put.begin(), own.put.end(), false) == own.put.end()) return own.put;
  const std::int64_t numel = replica_.buckets()[bucket].x.numel();
  const at::Tensor counts = range_of(own.parts, numel, numel + std::ssize(own.put))
                                .to(at::TensorOptions(at::kCPU).dtype(at::kFloat));
  std::vector<bool> used;
  for (std::int64_t i = 0; i < counts.numel(); ++i)
    used.push_back(counts.const_data_ptr<float>()[i] > 0);
  return used;
}

at::Tensor GradientExchange::flat(std::size_t bucket) {
  if (type_ == GradientType::as_computed) join_parts(bucket);
  return buckets_[bucket].gradients;
}

void GradientExchange::join_parts(std::size_t bucket) {
  OfBucket& own = buckets_[bucket];
  const at::Tensor& x = replica_.buckets()[bucket].x;
  if (!own.gradients.defined()) own.gradients = at::empty_like(x);
  for (const auto& [begin, values] : own.parts) {
    const std::int64_t count = std::min(values.numel(), x.numel() - begin);
    if (count > 0) own.gradients.narrow(0, begin, count).copy_(values.narrow(0, 0, count));
  }
}

void GradientExchange::release(std::size_t bucket) {
  OfBucket& own = buckets_[bucket];
  own.parts.clear();
  own.pending.reset();
  own.sum.reset();
  own.open = false;
}

}  // namespace decent
