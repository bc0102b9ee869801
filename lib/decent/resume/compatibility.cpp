#include "decent/resume/compatibility.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "decent/config/schema.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/update_names.h"

namespace decent {
namespace {

constexpr std::size_t kMostLines = 3;  // of differences in one message

struct Difference {
  std::string topic;
  std::string text;
};

std::string shorten(const std::string& value) {
  constexpr std::size_t kLongest = 80;
  return value.size() <= kLongest ? value : value.substr(0, kLongest) + "..";
}

std::vector<Difference> differences(const Fingerprint& then, const Fingerprint& now) {
  const std::map<std::string, std::string> old(then.begin(), then.end());
  std::vector<Difference> result;
  std::set<std::string> seen;
  for (const auto& [topic, value] : now) {
    seen.insert(topic);
    const auto found = old.find(topic);
    if (found == old.end()) {
      result.push_back({topic, topic + " (" + shorten(value) + ") is not in the checkpoint"});
    } else if (found->second != value) {
      result.push_back(
          {topic, topic + " was " + shorten(found->second) + ", is " + shorten(value)});
    }
  }
  for (const auto& [topic, value] : then) {
    if (seen.count(topic) == 0) {
      result.push_back({topic, topic + " (" + shorten(value) + ") is only in the checkpoint"});
    }
  }
  return result;
}

bool about_model(std::string_view topic) {
  return topic.starts_with("parameter ") || topic.starts_with("buffer ");
}

bool about_data(std::string_view topic) {
  return topic.starts_with("the fields of ") || topic.starts_with("the number of samples of ");
}

bool must_be_same(std::string_view topic) {
  constexpr std::array<std::string_view, 5> kKeys = {
      "optimizer.name", "data.batch_size", "train.grad_accumulation", "data.shuffle", "seed"};
  return about_model(topic) || std::find(kKeys.begin(), kKeys.end(), topic) != kKeys.end();
}

// What does not shape training, and what other topics say better.
bool need_not_be_told(std::string_view topic) {
  constexpr std::array<std::string_view, 15> kTopics = {"name",
                                                        "output",
                                                        "model.path",
                                                        "model.weights",
                                                        "model.device",
                                                        "data.train",
                                                        "data.eval",
                                                        "data.threads",
                                                        "data.prefetch",
                                                        "parallel.backend",
                                                        "parallel.timeout_s",
                                                        "parallel.stall_s",
                                                        "the topology",
                                                        "parallel.local_world_size",
                                                        "checkpoint.allow_missing"};
  return topic.starts_with("log.") ||
         std::find(kTopics.begin(), kTopics.end(), topic) != kTopics.end();
}

std::string value_of(const Fingerprint& facts, std::string_view topic) {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const auto& fact) { return fact.first == topic; });
  return found == facts.end() ? std::string() : found->second;
}

// With the same number of workers who meets whom must be the same; with another one it cannot be.
bool other_topology(const Manifest& manifest, const Fingerprint& now, int workers) {
  const bool same_count = manifest.world_size == workers;
  const char* topic = same_count ? "the topology" : "parallel.topology";
  const std::string then = value_of(manifest.facts, topic);
  const std::string is = value_of(now, topic);
  const bool both_custom = then.starts_with('{') && is.starts_with('{');
  return then != is && !(both_custom && !same_count);
}

// accum_iter means nothing to the other optimizers.
bool other_accum_iter(const std::string& topic, const Fingerprint& now) {
  return topic == "optimizer.accum_iter" &&
         update_takes(value_of(now, "optimizer.name"), "accum_iter");
}

// A key that the version that wrote the checkpoint did not have, at its default.
bool new_key_at_default(const std::string& topic, const Manifest& manifest,
                        const Fingerprint& now) {
  if (!value_of(manifest.facts, topic).empty()) return false;
  const std::vector<config::KeyInfo> keys = config::recipe_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const config::KeyInfo& key) {
    return key.name == topic && key.fallback == value_of(now, topic);
  });
}

// A source that there was not, or is not any more, is a change like any other.
bool other_data(const std::string& topic, const Manifest& manifest, const Fingerprint& now) {
  return about_data(topic) && !value_of(manifest.facts, topic).empty() &&
         !value_of(now, topic).empty();
}

[[noreturn]] void refuse(const Manifest& manifest, const std::vector<std::string>& lines) {
  std::string text = "the checkpoint of step " + std::to_string(manifest.step) +
                     " cannot be continued with this recipe:";
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) text += "\n  " + lines[i];
  if (lines.size() > kMostLines) {
    text += "\n  and " + std::to_string(lines.size() - kMostLines) + " more";
  }
  throw UserError(text);
}

}  // namespace

std::vector<std::string> check_can_resume(const Manifest& manifest, const Fingerprint& now,
                                          int workers) {
  std::vector<std::string> refused;
  std::vector<std::string> told;
  if (other_topology(manifest, now, workers)) {
    refused.push_back(
        "parallel.topology was " + shorten(value_of(manifest.facts, "parallel.topology")) +
        ", is " + shorten(value_of(now, "parallel.topology")) +
        (value_of(manifest.facts, "parallel.topology") == value_of(now, "parallel.topology")
             ? " with other groups of workers"
             : ""));
  }
  for (const Difference& difference : differences(manifest.facts, now)) {
    const std::string& topic = difference.topic;
    if (must_be_same(topic) || other_accum_iter(topic, now) || other_data(topic, manifest, now)) {
      refused.push_back(difference.text);
    } else if (topic.starts_with(kContentTopic)) {
      // Checkpoints of older programs have none; a source that there was not is told by its key.
      if (value_of(manifest.facts, topic).empty() || value_of(now, topic).empty()) continue;
      told.push_back(topic.substr(kContentTopic.size()) +
                     " holds other samples, of the same number and shape");
    } else if (new_key_at_default(topic, manifest, now)) {
      continue;
    } else if (topic == "the code of the model") {
      told.push_back("the model's code has changed; its parameters have not");
    } else if (!need_not_be_told(topic) && topic != "parallel.topology" && !about_data(topic)) {
      told.push_back(difference.text);
    }
  }
  if (!refused.empty()) refuse(manifest, refused);
  return told;
}

void check_same_model(const Manifest& manifest, const Fingerprint& now) {
  std::vector<std::string> refused;
  for (const Difference& difference : differences(manifest.facts, now)) {
    if (about_model(difference.topic)) refused.push_back(difference.text);
  }
  if (refused.empty()) return;
  std::string text =
      "the checkpoint of step " + std::to_string(manifest.step) + " is of another model:";
  for (std::size_t i = 0; i < std::min(refused.size(), kMostLines); ++i) {
    text += "\n  " + refused[i];
  }
  throw UserError(text);
}

}  // namespace decent
