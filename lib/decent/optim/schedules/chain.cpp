// torch.optim.lr_scheduler.SequentialLR

#include <algorithm>
#include <string>

#include "decent/core/error.h"
#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

struct ChainOptions {};

// A schedule of the chain with the step after which it begins.
struct Part {
  std::int64_t begin;
  ScheduleOptions of;
};

std::string name_of(const ScheduleOptions& of, std::size_t i) {
  return std::string(kAbout) + "schedule " + std::to_string(i + 1) + " of the chain (" +
         of.chain[i].name + ")";
}

std::vector<Part> parts_of(const ScheduleOptions& of) {
  if (of.chain.empty()) throw UserError(std::string(kAbout) + "chain needs a list of schedules");
  std::vector<Part> parts;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < of.chain.size(); ++i) {
    const ScheduleLink& link = of.chain[i];
    if (!schedule_fits_into_chain(link.name))
      throw UserError(name_of(of, i) + " cannot be a part of a chain");
    const bool is_last = i + 1 == of.chain.size();
    if (!link.steps && !is_last)
      throw UserError(name_of(of, i) + " needs steps: only the last one has all that are left");
    if (link.steps && *link.steps < 1) throw UserError(name_of(of, i) + ": steps must be >= 1");
    const std::int64_t rest = std::max<std::int64_t>(1, of.steps - begin);
    parts.push_back({.begin = begin,
                     .of = {.lr = of.lr * link.lr_scale,
                            .steps = link.steps.value_or(rest),
                            .steps_per_epoch = of.steps_per_epoch,
                            .options = link.options}});
    begin += parts.back().of.steps;
  }
  return parts;
}

struct Chain {
  using Options = ChainOptions;
  static constexpr std::string_view kName = "chain";
  static constexpr std::array<Option<Options>, 0> kOptions = {};

  static Schedule make(const Options&, const Rest& of) {
    std::vector<std::pair<std::int64_t, Schedule>> parts;
    for (const Part& part : parts_of(of))
      parts.emplace_back(part.begin, make_schedule(of.chain[parts.size()].name, part.of));
    return [parts = std::move(parts)](std::int64_t t) {
      auto part = parts.rbegin();
      while (part->first >= t) ++part;
      return part->second(t - part->first);
    };
  }

  // Those of every schedule, with its number: "1.name", "1.steps", "1.total_iters".
  static decent::Options arguments_of(const ScheduleOptions& of) {
    decent::Options all = arguments<Chain>(of);
    const std::vector<Part> parts = parts_of(rest_after(warm_up_of(of), of));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string number = std::to_string(i + 1) + ".";
      all.set(number + "name", of.chain[i].name);
      all.set(number + "lr", parts[i].of.lr);
      all.set(number + "steps", parts[i].of.steps);
      const decent::Options own = schedule_arguments(of.chain[i].name, parts[i].of);
      for (const auto& [name, value] : own.all()) all.set(number + name, value);
    }
    return all;
  }
};

}  // namespace

Row chain() {
  Row made = row<Chain>();
  made.arguments = Chain::arguments_of;
  return made;
}

}  // namespace decent::schedules
