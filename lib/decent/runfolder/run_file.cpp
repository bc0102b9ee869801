#include "decent/runfolder/run_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

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
  return {{"time", start.time},       {"program", start.program}, {"step", start.step},
          {"workers", start.workers}, {"lines", lines},           {"phases", start.phases},
          {"changed", changed}};
}

StartEntry start_in(const Json& json) {
  StartEntry start{.time = json.at("time"),
                   .program = json.at("program"),
                   .step = json.at("step"),
                   .workers = json.at("workers")};
  for (const Json& line : json.at("lines")) start.lines.emplace_back(line.at(0), line.at(1));
  start.phases = json.at("phases").get<decltype(start.phases)>();
  for (const Json& each : json.at("changed"))
    start.changed.push_back({.topic = each.at(0), .was = each.at(1), .is = each.at(2)});
  return start;
}

std::string find(const Texts& texts, const std::string& name) {
  const auto found = std::find_if(texts.begin(), texts.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == texts.end() ? "" : found->second;
}

std::vector<ChangedFact> changes(const Texts& before, const Texts& now) {
  std::vector<ChangedFact> changed;
  for (const auto& [topic, is] : now) {
    if (std::string was = find(before, topic); was != is)
      changed.push_back({.topic = topic, .was = std::move(was), .is = is});
  }
  for (const auto& [topic, was] : before)
    if (find(now, topic).empty()) changed.push_back({.topic = topic, .was = was, .is = {}});
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
  }
}

std::string add_start(const std::filesystem::path& file, StartEntry start, const Texts& facts,
                      const Texts& defaults) {
  RunFile before;
  std::string problem;
  try {
    before = read_run_file(file);
  } catch (const UserError& error) {
    problem = error.what();
  }
  if (!before.starts.empty()) start.changed = changes(before.facts, facts);
  std::vector<Json> starts;
  for (const StartEntry& each : before.starts) starts.push_back(json_of(each));
  starts.push_back(json_of(start));
  write_file(file, text_of(starts, object_of(facts), object_of(defaults)));
  return problem;
}

}  // namespace decent
