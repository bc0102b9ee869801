#include "decent/optim/schedule.h"

#include <string>

#include "decent/core/error.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"
#include "decent/optim/schedules/all.h"

namespace decent {
namespace {

using schedules::Row;

struct ConstantOptions {};

struct Constant {
  using Options = ConstantOptions;
  static constexpr std::string_view kName = "constant";
  static constexpr std::array<Option<Options>, 0> kOptions = {};
  static Schedule make(const Options&, const schedules::Rest& of) { return constant_lr(of.lr); }
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      schedules::constant(),     schedules::cosine_warmup(),       schedules::linear(),
      schedules::step(),         schedules::exponential(),         schedules::one_cycle(),
      schedules::inverse_sqrt(), schedules::warmup_stable_decay(), schedules::plateau(),
      schedules::chain()};
  return table;
}

const Row& row(std::string_view name) {
  if (const Row* found = find_named(rows(), name)) return *found;
  throw UserError("unknown schedule '" + std::string(name) + "'; valid: " + join(names_in(rows())));
}

}  // namespace

Row schedules::constant() { return row<Constant>(); }

Schedule constant_lr(double lr) {
  return [lr](std::int64_t) { return lr; };
}

Schedule make_schedule(std::string_view name, const ScheduleOptions& options) {
  const Row& its = row(name);
  check_known(options.options, schedule_table(), "schedule");
  return its.make(options);
}

const std::vector<NamedOptions>& schedule_table() {
  static const std::vector<NamedOptions> table = [] {
    std::vector<NamedOptions> all;
    for (const Row& each : rows()) all.push_back({std::string(each.name), each.keys});
    return all;
  }();
  return table;
}

Options schedule_arguments(std::string_view name, const ScheduleOptions& options) {
  return row(name).arguments(options);
}

bool schedule_follows_evaluations(std::string_view name) { return row(name).follows_evaluations; }

bool schedule_fits_into_chain(std::string_view name) {
  return name != "chain" && !schedule_follows_evaluations(name);
}

}  // namespace decent
