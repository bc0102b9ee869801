#include "decent/resume/topics.h"

#include <algorithm>
#include <utility>

#include "decent/checkpoint/facts.h"

namespace decent {
namespace {

using Row = std::pair<std::string, TopicRule>;

const std::vector<Row>& rows() {
  using enum config::OnResume;
  static const std::vector<Row> all = {
      {kParameterTopic, {.on_resume = same, .is_of_model = true, .is_kept = false}},
      {kBufferTopic, {.on_resume = same, .is_of_model = true, .is_kept = false}},
      {kBaseTopic, {.on_resume = same, .is_of_model = true}},
      {kAdaptersTopic, {.on_resume = same, .is_of_model = true}},
      {kCodeTopic, {.notice = "the model's code has changed; its parameters have not"}},
      // Compared by other_topology.
      {kTopologyTopic, {.on_resume = silent, .is_kept = false}},
      {kTopologyInEffect, {.on_resume = silent}},
      {kFieldsTopic, {.on_resume = same, .needs_both = true}},
      {kSamplesTopic, {.on_resume = same, .needs_both = true, .changes_measure = true}},
      {kContentTopic,
       {.needs_both = true,
        .notice = " holds other samples, of the same number and shape",
        .changes_measure = true}},
      // A change shows in data.transforms.
      {kTargetTopic, {.on_resume = silent, .changes_measure = true}},
      {kRatesTopic, {.on_resume = silent, .shapes_exchange = true}},
      {kBatchSizesTopic, {.needs_both = true}},
      {kPlacementTopic, {.needs_both = true, .is_kept = false}},
  };
  return all;
}

bool has_subject(const std::string& name) { return name.ends_with(' '); }

const Row* find_row(std::string_view topic) {
  const auto found = std::ranges::find_if(rows(), [&](const Row& row) {
    return has_subject(row.first) ? topic.starts_with(row.first) : topic == row.first;
  });
  return found == rows().end() ? nullptr : &*found;
}

TopicRule rule_of_key(const std::optional<config::KeyInfo>& key) {
  if (!key) return {};
  return {.on_resume = key->on_resume,
          .shapes_exchange = key->shapes_exchange,
          .changes_measure = key->changes_measure};
}

}  // namespace

TopicRule rule_of(std::string_view topic, const std::vector<config::KeyInfo>& keys) {
  if (const Row* row = find_row(topic)) return row->second;
  return rule_of_key(config::find_key(topic, keys));
}

// Every save asks for all topics, so the table of keys is made once.
TopicRule rule_of(std::string_view topic) {
  if (const Row* row = find_row(topic)) return row->second;
  return rule_of_key(config::find_key(topic));
}

std::string_view subject_of(std::string_view topic) {
  const Row* row = find_row(topic);
  return row == nullptr || !has_subject(row->first) ? "" : topic.substr(row->first.size());
}

}  // namespace decent
