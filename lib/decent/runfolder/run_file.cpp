#include "decent/runfolder/run_file.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostWorkers = 1'000'000;

// Texts need not be UTF-8: paths are among them.
std::string printed(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// A line for each start and each fact, as phases of many workers would fill pages.
std::string text_of(const std::vector<Json>& starts, const Json& facts, const Json& defaults) {
  std::string text = "{\"format\": " + std::to_string(kFormat) + ",\n\"starts\": [";
  for (const Json& each : starts)
    text += (&each == &starts.front() ? "\n " : ",\n ") + printed(each, -1);
  return text + "\n],\n\"facts\": " + printed(facts, 1) +
         ",\n\"defaults\": " + printed(defaults, 1) + "}\n";
}

Json object_of(const Texts& texts) {
  Json object = Json::object();
  for (const auto& [name, text] : texts) object[name] = text;
  return object;
}

Texts texts_in(const Json& object) {
  Texts texts;
  for (const auto& [name, text] : object.items()) texts.emplace_back(name, text.get<std::string>());
  return texts;
}

Json json_of(const StartEntry& start) {
  Json lines = Json::array(), changed = Json::array();
  for (const auto& [word, text] : start.lines) lines.push_back({word, text});
  for (const ChangedFact& each : start.changed) changed.push_back({each.topic, each.was, each.is});
  return {{"time", start.time},     {"program", start.program}, {"run", start.run},
          {"step", start.step},     {"workers", start.workers}, {"lines", lines},
          {"phases", start.phases}, {"changed", changed}};
}

struct OutOfRange {};

// A whole number from `least` to `most`.
std::int64_t integer_in(const Json& json, std::int64_t least, std::int64_t most) {
  const bool is_integer = json.is_number_integer() &&
                          (!json.is_number_unsigned() || json.get<std::uint64_t>() <= kLargest);
  const std::int64_t number = is_integer ? json.get<std::int64_t>() : least - 1;
  if (number < least || number > most) throw OutOfRange();
  return number;
}

StartEntry start_in(const Json& json) {
  StartEntry start{.time = json.at("time"),
                   .program = json.at("program"),
                   .run = json.value("run", ""),
                   .step = integer_in(json.at("step"), 0, kLargest),
                   .workers = static_cast<int>(integer_in(json.at("workers"), 1, kMostWorkers))};
  for (const Json& line : json.at("lines")) start.lines.emplace_back(line.at(0), line.at(1));
  for (const Json& phase : json.at("phases")) {
    auto& groups = start.phases.emplace_back();
    for (const Json& group : phase) {
      std::vector<int>& ranks = groups.emplace_back();
      for (const Json& rank : group)
        ranks.push_back(static_cast<int>(integer_in(rank, 0, start.workers - 1)));
    }
  }
  for (const Json& each : json.at("changed"))
    start.changed.push_back({.topic = each.at(0), .was = each.at(1), .is = each.at(2)});
  return start;
}

std::vector<ChangedFact> changes(const Facts& before, const Facts& now) {
  std::vector<ChangedFact> changed;
  for (const FactDifference& each : differences(now, before)) {
    changed.push_back(
        {.topic = each.topic, .was = each.there.value_or(""), .is = each.here.value_or("")});
  }
  return changed;
}

}  // namespace

RunFile read_run_file(const std::filesystem::path& file) {
  std::error_code failed;
  if (!std::filesystem::exists(file, failed)) return {};
  try {
    const Json json = Json::parse(read_text(file));
    if (json.at("format") != kFormat)
      throw UserError("'" + file.string() + "' is of another version of decent-train");
    RunFile run{.defaults = texts_in(json.at("defaults")), .facts = texts_in(json.at("facts"))};
    for (const Json& start : json.at("starts")) run.starts.push_back(start_in(start));
    return run;
  } catch (const Json::exception&) {
    throw UserError("'" + file.string() + "' is damaged");
  } catch (const OutOfRange&) {
    throw UserError("'" + file.string() + "' is damaged: a number is out of range");
  }
}

std::string add_start(const std::filesystem::path& file, StartEntry start, bool resumes,
                      const Facts& facts, const Texts& defaults) {
  RunFile before;
  std::string problem;
  try {
    if (resumes) before = read_run_file(file);
  } catch (const UserError& error) {
    problem = error.what();
  }
  if (!before.starts.empty()) start.changed = changes(before.facts, facts);
  const std::size_t surplus = std::max(before.starts.size() + 1, kMostStarts) - kMostStarts;
  std::vector<Json> starts;
  for (const StartEntry& each : std::span(before.starts).subspan(surplus))
    starts.push_back(json_of(each));
  starts.push_back(json_of(start));
  write_file(file, text_of(starts, object_of(facts), object_of(defaults)));
  return problem;
}

}  // namespace decent
