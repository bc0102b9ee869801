// Codes of 2 or 4 bits a weight (codec/modulo_code.h): a worker says where its weights lie on a
// grid, but not in which of the grid's repetitions. A worker whose weights are near enough can tell
// the repetition from its own weights. With d_ij, the difference of the codes that is nearest to 0,
//
//     z_i = x_i + gamma s' sum_j W_ij d_ij,
//
// so that one member of an edge gains what the others lose. In every step another part of the slice
// is sent in 8 bits of the same grid, which corrects differences that were too large for b bits.
// After Moniqua (Lu and De Sa, arXiv 2002.11787); there, the grid follows from a bound on how far
// copies can be apart, here from the learning rate, which bounds the steps of Adam and Lion.

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "decent/codec/modulo_kernels.h"
#include "decent/codec/modulo_layout.h"
#include "decent/core/error.h"
#include "decent/core/option_table.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/parallel/exchange/built_in.h"
#include "decent/parallel/exchange/exchange.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/outgoing_message.h"
#include "decent/parallel/exchange/pending_exchanges.h"
#include "decent/parallel/pending_work.h"
#include "decent/parallel/storage.h"

namespace decent {
namespace {

/// Which codes a bucket has after which step, the same on every worker: a function of topology,
/// schedule, factors of the learning rate and gamma.
class ModuloGrids {
 public:
  /// Throws UserError without a schedule.
  ModuloGrids(const ModuloFormat& format, const ExchangeSetup& setup, std::int64_t phases);

  /// R depends on gamma. With 0 there is nothing to send.
  void set_gamma(double gamma);

  /// Whether any worker ever mixes with another one.
  bool any() const { return range_.has_value(); }

  /// The layout of the codes of x^(step), with which update step + 1 mixes.
  ModuloLayout layout(std::size_t bucket, std::int64_t step);

 private:
  std::vector<GridFrom> grids_of(std::size_t bucket, double bound) const;

  ModuloFormat format_;
  std::int64_t slices_;
  std::int64_t phases_;
  std::vector<ModuloEdge> edges_;      // of all workers, in all phases
  std::optional<double> given_range_;  // modulo_range
  std::optional<double> range_;        // R
  LearningRateBound bound_;
  std::vector<std::int64_t> numels_;              // by bucket
  std::vector<std::vector<LrScaleFrom>> scales_;  // by bucket; none of them is 0
};

struct ModuloOptions {
  std::optional<double> modulo_range;  // R
};

constexpr std::array kModuloOptions = {Option<ModuloOptions>{
    "modulo_range",
    "How far apart the copies of a weight may be, in learning rates; null: follows from slices and "
    "topology",
    &ModuloOptions::modulo_range, above(0)}};

using Scales = std::vector<std::vector<LrScaleFrom>>;

const Schedule& checked(const Schedule& schedule) {
  if (!schedule)
    throw UserError(
        "a modulo exchange needs the schedule of the learning rate, which its grid follows");
  return schedule;
}

std::vector<ModuloEdge> edges_of(const std::vector<Phase>& phases) {
  std::vector<ModuloEdge> edges;
  for (const Phase& phase : phases) {
    for (const Edge& edge : phase)
      edges.push_back(
          {.members = static_cast<int>(edge.ranks.size()), .self_weight = edge.self_weight});
  }
  return edges;
}

// A parameter that does not learn still mixes; it uses the grid of the fastest one.
Scales with_largest_for_zero(Scales scales) {
  double largest = 0;
  for (const auto& bucket : scales) {
    for (const LrScaleFrom& from : bucket) largest = std::max(largest, from.lr_scale);
  }
  for (auto& bucket : scales) {
    for (LrScaleFrom& from : bucket) {
      if (from.lr_scale == 0) from.lr_scale = largest;
    }
  }
  return scales;
}

Scales scales_of(const ExchangeSetup& setup) {
  if (setup.lr_scales.empty()) return Scales(setup.buckets.size(), {LrScaleFrom{}});
  return with_largest_for_zero(setup.lr_scales);
}

// The options of modulo exchanges.
std::vector<OptionKey> modulo_keys() { return keys_of(kModuloOptions); }

ModuloGrids::ModuloGrids(const ModuloFormat& format, const ExchangeSetup& setup,
                         std::int64_t phases)
    : format_(format),
      slices_(setup.options.slices),
      phases_(phases),
      edges_(edges_of(setup.all_phases.empty() ? setup.phases : setup.all_phases)),
      given_range_(options_from(setup.options.own, kModuloOptions).modulo_range),
      bound_(checked(setup.schedule), setup.options.slices),
      scales_(scales_of(setup)) {
  for (const at::Tensor& bucket : setup.buckets) numels_.push_back(bucket.numel());
  set_gamma(1);
}

void ModuloGrids::set_gamma(double gamma) {
  range_ = modulo_range(gamma, slices_, edges_);
  if (range_ && given_range_) range_ = given_range_;
}

ModuloLayout ModuloGrids::layout(std::size_t bucket, std::int64_t step) {
  const std::int64_t part = (step - 1) / (slices_ * phases_) % format_.parts;
  return modulo_layout(format_, slice_after_step(numels_[bucket], step, slices_), part,
                       grids_of(bucket, bound_.of_update(step + 1)));
}

// Adjacent parameters with the same grid share an entry, which usually covers the whole bucket.
std::vector<GridFrom> ModuloGrids::grids_of(std::size_t bucket, double bound) const {
  std::vector<GridFrom> grids;
  for (const LrScaleFrom& from : scales_[bucket]) {
    const int exponent = grid_exponent(*range_, bound * from.lr_scale, format_.bits);
    if (grids.empty() || grids.back().exponent != exponent)
      grids.push_back({.offset = from.offset, .exponent = exponent});
  }
  return grids;
}

// The codes of a bucket after one step.
struct Message {
  OutgoingMessage codes = {};
  ModuloLayout layout = {};
  double dither = 0;
};

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
        communicator_(setup.communicator),
        meetings_(setup, /*most_in_pairs=*/std::numeric_limits<int>::max()),
        grids_(format, setup, meetings_.phases()),
        buckets_(setup.buckets.size()),
        pending_(setup) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const at::Tensor& x = setup.buckets[b];
      buckets_[b].x = x;
      buckets_[b].wrapped = at::zeros({1}, x.options().dtype(at::kLong));
    }
  }

  void set_gamma(double gamma) override {
    Exchange::set_gamma(gamma);
    grids_.set_gamma(gamma);
  }

  PieceWork while_writing(std::size_t bucket, std::int64_t step) override {
    if (!sends_after(step)) return nullptr;
    begin_message(bucket, step);
    return [this, bucket](std::int64_t begin, std::int64_t end) { encode(bucket, {begin, end}); };
  }

  void start(std::size_t bucket, std::int64_t step) override {
    buckets_[bucket].received.clear();
    if (pending_.gave_up()) buckets_[bucket].rooms.reset();  // what was given up may still come
    if (!sends_after(step)) return;
    Message& message = complete_message(bucket, step);
    const Meeting& meeting = meetings_.after_step(step);
    buckets_[bucket].last ^= 1;
    message.codes.sent();
    if (message.layout.bytes == 0) return;
    pending_.start(bucket, meeting, message.layout.bytes * (meeting.members() - 1),
                   [&] { return send(bucket, meeting); });
  }

  Mixing wait(std::size_t bucket) override {
    const Meeting* meeting = pending_.finish(bucket);
    OfBucket& own = buckets_[bucket];
    own.measured = 0;
    if (meeting == nullptr) return {};
    own.wrapped.zero_();
    own.measured = own.message().layout.fine_elements * std::ssize(meeting->peers);
    const double weight = meeting->weights(gamma()).other;
    return {.in_place = [&own, this, weight, others = messages_of_others(own)](std::int64_t begin,
                                                                               std::int64_t end) {
      mix(own.x, own, others, weight, own.wrapped.mutable_data_ptr<std::int64_t>(), {begin, end});
    }};
  }

  std::optional<Received> peek(std::size_t bucket) override {
    const Meeting* meeting = pending_.wait(bucket);
    if (meeting == nullptr) return std::nullopt;
    const OfBucket& own = buckets_[bucket];
    const at::Tensor mean = own.x.clone();
    mix(mean, own, messages_of_others(own), 1.0 / (meeting->members() - 1), nullptr,
        {0, mean.numel()});
    return Received{&meeting->edge, mean};
  }

  void settle() override { pending_.settle(); }
  void drop() override {
    pending_.drop();
    for (OfBucket& own : buckets_) own.received.clear();
  }

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
    std::array<Message, 2> messages = {};  // the last one sent, and the next
    std::size_t last = 0;                  // which was sent last
    // The messages of the meeting's peers, in their order.
    std::vector<std::shared_ptr<PendingReceived>> received = {};
    at::Tensor rooms = {};      // [peers, longest message], uint8: for those that need it
    at::Tensor wrapped = {};    // [1], int64: see ModuloMixing
    std::int64_t measured = 0;  // differences of 8 bits in the last mixing

    const Message& message() const { return messages[last]; }
    Message& next() { return messages[last ^ 1]; }
  };

  bool sends_after(std::int64_t step) const {
    return grids_.any() && !meetings_.after_step(step).alone();
  }

  void begin_message(std::size_t bucket, std::int64_t step) {
    OfBucket& own = buckets_[bucket];
    Message& message = own.next();
    message.layout = grids_.layout(bucket, step);
    message.dither = modulo_dither(format_, step + 1);
    message.codes.begin(*communicator_, step, message.layout.bytes, own.x);
  }

  // Completes the codes of x^(step), if the pass that wrote x^(step) has not made them all.
  Message& complete_message(std::size_t bucket, std::int64_t step) {
    OfBucket& own = buckets_[bucket];
    Message& message = own.next();
    if (message.codes.complete(step, own.x.numel())) return message;
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
                      .message = message.codes.data()},
                     piece);
    });
    message.codes.made(piece.numel());
  }

  Pending send(std::size_t bucket, const Meeting& meeting) {
    OfBucket& own = buckets_[bucket];
    const at::Tensor codes = own.message().codes.bytes();
    const std::int64_t bytes = codes.numel();
    const std::int64_t peers = std::ssize(meeting.peers);
    meeting.send_to_peers([&](std::size_t i) {
      const auto room = [&] {
        if (!own.rooms.defined() || own.rooms.size(0) < peers || own.rooms.size(1) < bytes)
          own.rooms = at::empty({peers, bytes}, codes.options());
        return own.rooms.select(0, static_cast<std::int64_t>(i)).narrow(0, 0, bytes);
      };
      own.received.push_back(
          communicator_->exchange_views(codes, meeting.peers[i], meeting.tag(bucket), room));
    });
    return all_of({own.received.begin(), own.received.end()});
  }

  // Call it after the wait for that bucket's exchange.
  void mix(const at::Tensor& into, const OfBucket& own, std::span<const std::uint8_t* const> others,
           double weight, std::int64_t* wrapped, const Range& piece) const {
    with_kernels(into, [&]<typename T>(const TypedModuloKernels<T>& kernels, T* x) {
      kernels.mix({.x = x,
                   .segments = own.message().layout.segments,
                   .own = own.message().codes.data(),
                   .others = others,
                   .weight = weight,
                   .bits = format_.bits,
                   .wrapped = wrapped},
                  piece);
    });
  }

  static std::vector<const std::uint8_t*> messages_of_others(const OfBucket& own) {
    std::vector<const std::uint8_t*> messages;
    for (const auto& received : own.received)
      messages.push_back(received->parts().front().values.const_data_ptr<std::uint8_t>());
    return messages;
  }

  ModuloFormat format_;
  std::shared_ptr<Communicator> communicator_;
  Meetings meetings_;
  ModuloGrids grids_;
  std::vector<OfBucket> buckets_;
  PendingExchanges pending_;
};

// Memory for the messages of the other members and two of the worker's own. With shared memory,
// others' messages are read in place.
ExchangeCosts costs_of(const ModuloFormat& format, int members) {
  if (members == 1) return {};
  const double parts = static_cast<double>(format.parts);
  const double message = (format.bits * (parts - 1) + 8) / parts / 32;
  return {.sent = (members - 1) * message,
          .memory = (members + 1) * message,
          .memory_sharing = 2 * message};
}

ExchangeMethod modulo_exchange(std::string name, const ModuloFormat& format) {
  return {.name = std::move(name),
          .make =
              [format](const ExchangeSetup& setup) {
                return std::make_unique<ModuloExchange>(format, setup);
              },
          .costs = [format](int members) { return costs_of(format, members); },
          .needs_near_copies = true,
          .keys = modulo_keys()};
}

}  // namespace

ExchangeMethod modulo2_exchange() { return modulo_exchange("modulo2", kModulo2); }
ExchangeMethod modulo4_exchange() { return modulo_exchange("modulo4", kModulo4); }

}  // namespace decent
