#include "decent/optim/schedule.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/schedules/all.h"

namespace decent {
namespace {

using schedules::Row;

const std::array<Row, 7>& rows() {
  static const std::array<Row, 7> table = {
      schedules::constant(),    schedules::cosine_warmup(), schedules::linear(), schedules::step(),
      schedules::exponential(), schedules::one_cycle(),     schedules::plateau()};
  return table;
}

const Row& row(std::string_view name) {
  for (const Row& each : rows())
    if (each.name == name) return each;
  throw UserError("unknown schedule '" + std::string(name) + "'; valid: " + join(schedule_names()));
}

template <class T>
void check_value(bool valid, const char* name, T value, const char* range) {
  if (valid) return;
  std::ostringstream text;
  text << "schedule: " << name << " is " << value << ": it must be " << range;
  throw UserError(text.str());
}

}  // namespace

void schedules::check(bool valid, const char* name, std::int64_t value, const char* range) {
  check_value(valid, name, value, range);
}

void schedules::check(bool valid, const char* name, double value, const char* range) {
  check_value(valid, name, value, range);
}

Row schedules::constant() {
  return {.name = "constant",
          .arguments = [](const ScheduleOptions&) { return Options(); },
          .make = [](const ScheduleOptions& options) { return constant_lr(options.lr); }};
}

Schedule constant_lr(double lr) {
  return [lr](std::int64_t) { return lr; };
}

Schedule make_schedule(std::string_view name, const ScheduleOptions& options) {
  return row(name).make(options);
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Row& each : rows()) names.emplace_back(each.name);
  return names;
}

Options schedule_arguments(std::string_view name, const ScheduleOptions& options) {
  const Row& its = row(name);
  its.make(options);
  return its.arguments(options);
}

bool schedule_takes(std::string_view name, std::string_view option) {
  const Options arguments = row(name).arguments(ScheduleOptions{});
  return std::any_of(arguments.all().begin(), arguments.all().end(),
                     [&](const auto& each) { return each.first == option; });
}

bool schedule_requires(std::string_view name, std::string_view option) {
  return schedule_takes(name, option) && row(name).arguments(ScheduleOptions{}).is_null(option);
}

bool schedule_follows_evaluations(std::string_view name) { return row(name).follows_evaluations; }

}  // namespace decent
