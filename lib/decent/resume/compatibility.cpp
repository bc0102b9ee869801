#include "decent/resume/compatibility.h"

#include <optional>
#include <string_view>

#include "decent/config/keys.h"
#include "decent/core/error.h"
#include "decent/optim/update_names.h"
#include "decent/resume/topics.h"

namespace decent {
namespace {

constexpr std::string_view kMethodTopic = "parallel.method";

// Versions that wrote no method into their checkpoints used the default one.
Facts facts_of(const Manifest& manifest) {
  Facts facts = manifest.facts;
  const auto key = config::find_key(kMethodTopic);
  if (key && value_of(facts, kMethodTopic).empty()) facts.emplace_back(kMethodTopic, key->fallback);
  return facts;
}

// The method of a run. A method that only a later version knows is assumed to guarantee nothing.
config::MethodName method_of(const Facts& facts, const std::vector<config::MethodName>& methods) {
  const std::string name = value_of(facts, kMethodTopic);
  const config::MethodName* found = find_named(methods, name);
  return found == nullptr ? config::MethodName{.name = name, .averages_weights = false} : *found;
}

// Whether the method uses the key; only some methods use keys of mixing and sending.
bool uses(const config::MethodName& method, std::string_view topic) {
  if (method.averages_weights) return true;
  if (topic == "parallel.comm_dtype") return !method.sends.empty();
  const std::optional<config::KeyInfo> key = config::find_key(topic);
  return !key || !key->of_averaging;
}

std::string text_of(const FactDifference& difference) {
  const auto& [topic, now, then] = difference;
  if (!then) return topic + " (" + shorten(*now) + ") is not in the checkpoint";
  if (!now) return topic + " (" + shorten(*then) + ") is only in the checkpoint";
  return topic + " was " + shorten(*then) + ", is " + shorten(*now);
}

// Whether the run trains by the topology of its recipe.
bool has_own_topology(const Facts& facts) { return value_of(facts, kTopologyInEffect).empty(); }

std::string topology_in_effect(const Facts& facts) {
  return value_of(facts, has_own_topology(facts) ? "parallel.topology" : kTopologyInEffect);
}

// Of two numbers of workers. Own phases are for one number, so that they cannot be the same.
bool other_name(const std::string& then, const std::string& now) {
  return then != now && !(then.starts_with('{') && now.starts_with('{'));
}

// Whether the topology differs: the groups of workers if the number of workers is the same, else
// only its name, since the groups cannot be the same. A topology that fits only one of the two
// numbers of workers is no other one.
bool other_topology(const Manifest& manifest, const ResumingRun& now) {
  const Facts& then = manifest.facts;
  const Facts& is = now.facts;
  if (manifest.world_size == now.workers)
    return value_of(then, kTopologyTopic) != value_of(is, kTopologyTopic);
  return other_name(value_of(then, "parallel.topology"), value_of(is, "parallel.topology")) &&
         other_name(topology_in_effect(then), topology_in_effect(is));
}

// A difference in accum_iter counts only for an optimizer that takes it.
bool other_accum_iter(const std::string& topic, const Facts& now) {
  return topic == "optimizer.accum_iter" &&
         update_takes(value_of(now, "optimizer.name"), "accum_iter");
}

// Whether the key is at its default and unknown to the version that wrote the checkpoint.
bool new_key_at_default(const FactDifference& difference,
                        const std::vector<config::KeyInfo>& keys) {
  const auto key = config::find_key(difference.topic, keys);
  return key && !difference.there && difference.here == key->fallback;
}

[[noreturn]] void refuse(const Manifest& manifest, const std::string& why,
                         const std::vector<std::string>& lines) {
  throw UserError("the checkpoint of step " + std::to_string(manifest.step) + " " + why + ":" +
                  first_lines(lines));
}

std::string topology_text(const Manifest& manifest, const Facts& now) {
  const bool both_own = has_own_topology(manifest.facts) && has_own_topology(now);
  const std::string then = topology_in_effect(manifest.facts);
  const std::string is = topology_in_effect(now);
  return (both_own ? "parallel.topology" : kTopologyInEffect) + " was " + shorten(then) + ", is " +
         shorten(is) + (then == is ? " with other groups of workers" : "") +
         (has_own_topology(now) ? "" : ", because parallel.topology does not fit these workers");
}

// What the user is told about a difference that is no obstacle, if anything.
std::optional<std::string> notice_of(const FactDifference& difference, const TopicRule& rule) {
  if (rule.on_resume == config::OnResume::silent) return std::nullopt;
  if (!rule.notice.empty())
    return std::string(subject_of(difference.topic)) + std::string(rule.notice);
  return text_of(difference);
}

}  // namespace

std::vector<std::string> check_can_resume(const Manifest& manifest, const ResumingRun& now) {
  std::vector<std::string> refused;
  std::vector<std::string> told;
  const Facts saved = facts_of(manifest);
  const config::MethodName then = method_of(saved, now.names.methods);
  const config::MethodName is = method_of(now.facts, now.names.methods);
  const std::vector<config::KeyInfo> keys = config::recipe_keys(now.names);
  const bool both_mix = then.averages_weights && is.averages_weights;
  if (both_mix && other_topology(manifest, now))
    refused.push_back(topology_text(manifest, now.facts));
  for (const FactDifference& difference : differences(now.facts, saved)) {
    const std::string& topic = difference.topic;
    const TopicRule rule = rule_of(topic);
    if (rule.needs_both && !(difference.here && difference.there)) continue;
    if (new_key_at_default(difference, keys)) continue;
    if (rule.on_resume == config::OnResume::same || other_accum_iter(topic, now.facts)) {
      refused.push_back(text_of(difference));
    } else if (!uses(then, topic) && !uses(is, topic)) {
      continue;
    } else if (const auto notice = notice_of(difference, rule)) {
      told.push_back(*notice);
    }
  }
  if (!refused.empty()) refuse(manifest, "cannot be continued with this recipe", refused);
  return told;
}

std::vector<std::string> exchange_changes(const Manifest& manifest, const ResumingRun& now) {
  if (manifest.world_size != now.workers || manifest.copies_alike()) return {};
  const Facts saved = facts_of(manifest);
  if (!method_of(saved, now.names.methods).averages_weights) return {std::string(kMethodTopic)};
  const std::vector<config::KeyInfo> keys = config::recipe_keys(now.names);
  std::vector<std::string> topics;
  for (const FactDifference& difference : differences(now.facts, saved)) {
    if (rule_of(difference.topic, keys).shapes_exchange && !new_key_at_default(difference, keys))
      topics.push_back(difference.topic);
  }
  return topics;
}

Facts measure_of(const Facts& facts) {
  Facts measure;
  for (const auto& fact : facts) {
    const std::string_view subject = subject_of(fact.first);
    if (!subject.empty() && subject != "data.eval") continue;
    if (rule_of(fact.first).changes_measure) measure.push_back(fact);
  }
  return measure;
}

void check_same_model(const Manifest& manifest, const Facts& now) {
  std::vector<std::string> refused;
  for (const FactDifference& difference : differences(now, manifest.facts)) {
    if (rule_of(difference.topic).is_of_model) refused.push_back(text_of(difference));
  }
  if (!refused.empty()) refuse(manifest, "is of another model", refused);
}

}  // namespace decent
