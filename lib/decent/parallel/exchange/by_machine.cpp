#include "decent/parallel/exchange/by_machine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/parallel/named_tensors.h"

namespace decent {
namespace {

constexpr std::string_view kWithinPrefix = "within.";

// Both exchanges have all phases. In each phase, this worker is alone in one of the two exchanges.
class ByMachine : public Exchange {
 public:
  ByMachine(std::unique_ptr<Exchange> between, std::unique_ptr<Exchange> within)
      : between_(std::move(between)), within_(std::move(within)) {}

  void set_gamma(double gamma) override {
    Exchange::set_gamma(gamma);
    between_->set_gamma(gamma);
    within_->set_gamma(gamma);
  }

  PieceWork while_writing(std::size_t bucket, std::int64_t step) override {
    PieceWork work = between_->while_writing(bucket, step);
    return work ? work : within_->while_writing(bucket, step);
  }

  void start(std::size_t bucket, std::int64_t step) override {
    between_->start(bucket, step);
    within_->start(bucket, step);
  }

  // Calls both, because each notes its last mixing.
  Mixing wait(std::size_t bucket) override {
    Mixing between = between_->wait(bucket);
    Mixing within = within_->wait(bucket);
    return between.mixes() ? between : within;
  }

  std::optional<Received> peek(std::size_t bucket) override {
    std::optional<Received> received = between_->peek(bucket);
    return received ? received : within_->peek(bucket);
  }

  void settle() override {
    between_->settle();
    within_->settle();
  }

  void drop() override {
    between_->drop();
    within_->drop();
  }

  NamedTensors state() const override {
    NamedTensors all = between_->state();
    for (const auto& [name, tensor] : within_->state())
      all.emplace_back(tensor_name(kWithinPrefix, name), tensor);
    return all;
  }

  void restore(const NamedTensors& state) override {
    const auto of_within = std::ssize(within_->state());
    between_->restore({state.begin(), state.end() - of_within});
    within_->restore(part_of({state.end() - of_within, state.end()}, kWithinPrefix));
  }

  std::optional<double> wrap_share() const override {
    const std::optional<double> between = between_->wrap_share();
    return between ? between : within_->wrap_share();
  }

 private:
  std::unique_ptr<Exchange> between_;
  std::unique_ptr<Exchange> within_;
};

void check_machines(const std::vector<int>& machines, int workers) {
  if (std::ssize(machines) == workers) return;
  throw UserError("by_machine: machines has " + std::to_string(machines.size()) + " entries for " +
                  counted(workers, "worker"));
}

// The setup with only those edges that it `takes`; members of other edges are alone.
ExchangeSetup part_of_setup(ExchangeSetup setup, const std::function<bool(const Edge&)>& takes) {
  if (setup.all_phases.empty()) setup.all_phases = setup.phases;
  for (Phase& phase : setup.phases) {
    Phase part;
    for (Edge& edge : phase) {
      if (takes(edge)) {
        part.push_back(std::move(edge));
      } else {
        for (const int each : edge.ranks) part.push_back({.ranks = {each}, .self_weight = 1});
      }
    }
    phase = std::move(part);
  }
  return setup;
}

std::unique_ptr<Exchange> make_part(const ExchangeChoice& choice, const ExchangeSetup& setup,
                                    const std::function<bool(const Edge&)>& takes) {
  return choice.make_with_options_of(part_of_setup(setup, takes));
}

std::vector<OptionKey> keys_of_both(const ExchangeChoice& one, const ExchangeChoice& other) {
  std::vector<OptionKey> keys = one.keys().value_or(std::vector<OptionKey>());
  for (const OptionKey& key : other.keys().value_or(std::vector<OptionKey>())) keys.push_back(key);
  return keys;
}

}  // namespace

bool within_machine(const Edge& edge, const std::vector<int>& machines) {
  const auto machine_of = [&](int rank) { return machines.at(static_cast<std::size_t>(rank)); };
  return std::ranges::all_of(
      edge.ranks, [&](int rank) { return machine_of(rank) == machine_of(edge.ranks.front()); });
}

ExchangeChoice by_machine(ExchangeChoice between, ExchangeChoice within, std::vector<int> machines,
                          ExchangeOptions options) {
  if (between.options != ExchangeOptions() || within.options != ExchangeOptions())
    throw UserError("by_machine: the options are the last argument, the same for both exchanges");
  std::vector<OptionKey> keys = keys_of_both(between, within);
  const bool knows_all = between.keys() && within.keys();
  const bool near = between.needs_near_copies() || within.needs_near_copies();
  ExchangeChoice both(
      ExchangeMethod{.name = {},
                     .make =
                         [between = std::move(between), within = std::move(within),
                          machines = std::move(machines)](const ExchangeSetup& setup) {
                           check_machines(machines, setup.communicator->size());
                           const auto inside = [&](const Edge& edge) {
                             return within_machine(edge, machines);
                           };
                           // Every worker needs this order, because both make and connect groups.
                           auto of_between = make_part(between, setup, std::not_fn(inside));
                           auto of_within = make_part(within, setup, inside);
                           return std::make_unique<ByMachine>(std::move(of_between),
                                                              std::move(of_within));
                         },
                     .needs_near_copies = near,
                     .keys = std::move(keys)},
      std::move(options));
  if (!knows_all) both.take_any_options();
  return both;
}

}  // namespace decent
