// Codes of 2 or 4 bits a weight (codec/modulo_code.h): a worker tells where its weights lie on a
// grid, but not in which of its repetitions. Whoever is near enough can tell that by its own
// weights. With d_ij, the difference of the codes that is nearest to 0,
//
//     z_i = x_i + gamma s' sum_j W_ij d_ij,
//
// so that what one member of an edge gains the others lose. In every step another part of the slice
// is sent in 8 bits of the same grid, which corrects differences that were too large for b bits.
// After Moniqua (Lu and De Sa, arXiv 2002.11787); there, the grid follows from a bound on how far
// copies can be apart, here from the learning rate, which bounds the steps of Adam and Lion.

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <atomic>

#include "decent/codec/modulo_kernels.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/parallel/device_kernels.h"
#include "decent/parallel/exchange/all_of.h"
#include "decent/parallel/exchange/built_in.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/modulo_grids.h"
#include "decent/parallel/exchange/pending_exchanges.h"

namespace decent {
namespace {

// The codes of a bucket after one step.
struct Message {
  std::int64_t step = 0;
  ModuloLayout layout = {};
  double dither = 0;
  at::Tensor codes = {};  // [longest so far], uint8
  // Pieces are encoded while they are written, by any thread.
  std::atomic<std::int64_t> encoded = 0;

  at::Tensor bytes() const { return codes.narrow(0, 0, layout.bytes); }
};

at::Tensor bytes_like(const at::Tensor& x, at::IntArrayRef sizes) {
  return at::empty(sizes, x.options().dtype(at::kByte));
}

// Calls f with the kernels of the bucket's device and its elements.
template <typename F>
void with_kernels(const at::Tensor& x, const F& f) {
  const ModuloKernels& kernels = x.is_cuda() ? cuda_modulo_kernels() : cpu_modulo_kernels();
  if (x.scalar_type() == at::kDouble) return f(kernels.of<double>(), x.mutable_data_ptr<double>());
  f(kernels.of<float>(), x.mutable_data_ptr<float>());
}

class ModuloExchange : public Exchange {
 public:
  ModuloExchange(const ModuloFormat& format, const ExchangeSetup& setup)
      : format_(format),
        world_(setup.world),
        meetings_(setup),
        grids_(format, setup, meetings_.phases()),
        buckets_(setup.buckets.size()),
        pending_(setup) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const at::Tensor& x = setup.buckets[b];
      buckets_[b].x = x;
      buckets_[b].wrapped = at::zeros({1}, x.options().dtype(at::kLong));
    }
  }

  void set_gamma(double gamma) override { grids_.set_gamma(gamma); }

  PieceWork while_writing(std::size_t bucket, std::int64_t step) override {
    if (!sends_after(step)) return nullptr;
    begin_message(bucket, step);
    return [this, bucket](std::int64_t begin, std::int64_t end) { encode(bucket, {begin, end}); };
  }

  void start(std::size_t bucket, std::int64_t step) override {
    if (!sends_after(step)) return;
    const Message& message = complete_message(bucket, step);
    const Meeting& meeting = meetings_.after_step(step);
    buckets_[bucket].sent ^= 1;
    if (message.layout.bytes == 0) return;
    pending_.start(bucket, meeting, message.layout.bytes * (meeting.members() - 1),
                   [&] { return send(bucket, meeting); });
  }

  Mixing wait(std::size_t bucket, double gamma) override {
    const Meeting* meeting = pending_.finish(bucket);
    OfBucket& own = buckets_[bucket];
    own.measured = 0;
    if (meeting == nullptr) return {};
    own.wrapped.zero_();
    own.measured = own.message().layout.fine_elements * std::ssize(meeting->peers);
    const double weight = meeting->weights(gamma).other;
    const int others = meeting->members() - 1;
    return {.in_place = [&own, this, weight, others](std::int64_t begin, std::int64_t end) {
      mix(own.x, own, others, weight, own.wrapped.mutable_data_ptr<std::int64_t>(), {begin, end});
    }};
  }

  std::optional<Received> peek(std::size_t bucket) override {
    const Meeting* meeting = pending_.wait(bucket);
    if (meeting == nullptr) return std::nullopt;
    const OfBucket& own = buckets_[bucket];
    const at::Tensor mean = own.x.clone();
    const int others = meeting->members() - 1;
    mix(mean, own, others, 1.0 / others, nullptr, {0, mean.numel()});
    return Received{&meeting->edge, mean};
  }

  void settle() override { pending_.settle(); }
  void drop() override { pending_.drop(); }

  std::optional<double> wrap_share() const override {
    std::int64_t wrapped = 0;
    std::int64_t measured = 0;
    for (const OfBucket& own : buckets_) {
      if (own.measured == 0) continue;
      wrapped += own.wrapped.item<std::int64_t>();
      measured += own.measured;
    }
    if (measured == 0) return std::nullopt;
    return static_cast<double>(wrapped) / static_cast<double>(measured);
  }

 private:
  struct OfBucket {
    at::Tensor x = {};
    std::array<Message, 2> messages = {};  // the one that is under way, and the next
    std::size_t sent = 0;                  // which is under way
    at::Tensor others = {};     // [members - 1, longest message], uint8: what peers have sent
    at::Tensor wrapped = {};    // [1], int64: see ModuloMixing
    std::int64_t measured = 0;  // differences of 8 bits in the last mixing

    const Message& message() const { return messages[sent]; }
    Message& next() { return messages[sent ^ 1]; }
  };

  bool sends_after(std::int64_t step) const {
    return grids_.any() && !meetings_.after_step(step).alone();
  }

  void begin_message(std::size_t bucket, std::int64_t step) {
    OfBucket& own = buckets_[bucket];
    Message& message = own.next();
    message.step = step;
    message.layout = grids_.layout(bucket, step);
    message.dither = modulo_dither(format_, step + 1);
    message.encoded = 0;
    if (!message.codes.defined() || message.codes.numel() < message.layout.bytes)
      message.codes = bytes_like(own.x, {message.layout.bytes});
  }

  // All codes of x^(step), of which the pass that wrote it may have made some or all.
  const Message& complete_message(std::size_t bucket, std::int64_t step) {
    OfBucket& own = buckets_[bucket];
    const Message& message = own.next();
    if (message.step == step && message.encoded == own.x.numel()) return message;
    begin_message(bucket, step);
    or_cpu(kernels_of(own.x)).in_pieces(own.x.numel(), [&](std::int64_t begin, std::int64_t end) {
      encode(bucket, {begin, end});
    });
    return message;
  }

  void encode(std::size_t bucket, const Range& piece) {
    OfBucket& own = buckets_[bucket];
    Message& message = own.next();
    with_kernels(own.x, [&]<typename T>(const TypedModuloKernels<T>& kernels, T* x) {
      kernels.encode({.x = x,
                      .segments = message.layout.segments,
                      .dither = static_cast<T>(message.dither),
                      .message = message.codes.mutable_data_ptr<std::uint8_t>()},
                     piece);
    });
    message.encoded += piece.numel();
  }

  Pending send(std::size_t bucket, const Meeting& meeting) {
    OfBucket& own = buckets_[bucket];
    const std::int64_t bytes = own.message().layout.bytes;
    const std::int64_t peers = std::ssize(meeting.peers);
    if (!own.others.defined() || own.others.size(0) < peers || own.others.size(1) < bytes)
      own.others = bytes_like(own.x, {peers, bytes});
    std::vector<Pending> works;
    for (std::int64_t i = 0; i < peers; ++i) {
      works.push_back(
          world_->exchange(own.message().bytes(), own.others.select(0, i).narrow(0, 0, bytes),
                           meeting.peers[static_cast<std::size_t>(i)], static_cast<int>(bucket)));
    }
    return all_of(std::move(works));
  }

  // Once the exchange of that bucket has been waited for.
  void mix(const at::Tensor& into, const OfBucket& own, int others, double weight,
           std::int64_t* wrapped, const Range& piece) const {
    with_kernels(into, [&]<typename T>(const TypedModuloKernels<T>& kernels, T* x) {
      kernels.mix({.x = x,
                   .segments = own.message().layout.segments,
                   .own = own.message().codes.const_data_ptr<std::uint8_t>(),
                   .others = own.others.const_data_ptr<std::uint8_t>(),
                   .stride = own.others.size(1),
                   .count = others,
                   .weight = weight,
                   .bits = format_.bits,
                   .wrapped = wrapped},
                  piece);
    });
  }

  ModuloFormat format_;
  std::shared_ptr<Communicator> world_;
  Meetings meetings_;
  ModuloGrids grids_;
  std::vector<OfBucket> buckets_;
  PendingExchanges pending_;
};

// A message to each other member, of which two are kept for what is sent.
ExchangeCosts costs_of(const ModuloFormat& format, int members) {
  if (members == 1) return {};
  const double parts = static_cast<double>(format.parts);
  const double message = (format.bits * (parts - 1) + 8) / parts / 32;
  return {.sent = (members - 1) * message, .memory = (members + 1) * message};
}

ExchangeMethod modulo_exchange(std::string name, const ModuloFormat& format) {
  return {.name = std::move(name),
          .make =
              [format](const ExchangeSetup& setup) {
                return std::make_unique<ModuloExchange>(format, setup);
              },
          .costs = [format](int members) { return costs_of(format, members); },
          .needs_near_copies = true};
}

}  // namespace

ExchangeMethod modulo2_exchange() { return modulo_exchange("modulo2", kModulo2); }
ExchangeMethod modulo4_exchange() { return modulo_exchange("modulo4", kModulo4); }

}  // namespace decent
