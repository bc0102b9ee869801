#pragma once
// What a difference in a fact means. Keys of the recipe declare that themselves (config::KeyInfo);
// the other topics have a row here.

#include <string>
#include <string_view>
#include <vector>

#include "decent/config/keys.h"

namespace decent {

// A topic that ends with a space is followed by the name of what it is about.
inline const std::string kParameterTopic = "parameter ";  // of the model: its type and shape
inline const std::string kBufferTopic = "buffer ";
inline const std::string kBaseTopic = "the base of the adapters";  // its checksum
inline const std::string kAdaptersTopic = "the adapters";          // what their shapes do not say
inline const std::string kCodeTopic = "the code of the model";
inline const std::string kTopologyTopic = "the topology";  // who meets whom in each phase
inline const std::string kFieldsTopic = "the fields of ";  // data.train, data.eval, ..
inline const std::string kSamplesTopic = "the number of samples of ";
inline const std::string kContentTopic = "the content of ";              // a checksum of samples
inline const std::string kTargetTopic = "the transforms of the target";  // give metrics their unit
inline const std::string kRatesTopic = "the learning rates";             // of all steps
/// By place, in runs in which they may differ.
inline const std::string kBatchSizesTopic = "the batch size of each worker";
/// Which workers are on which machine, in runs for which that matters.
inline const std::string kPlacementTopic = "the placement of workers on machines";

struct TopicRule {
  config::OnResume on_resume = config::OnResume::tell;
  /// Only two values are a difference: if one side lacks the topic, another topic says why.
  bool needs_both = false;
  /// What the user is told in place of both values, after the name of what the topic is about.
  std::string_view notice = {};
  bool is_of_model = false;      // a tensor of the model
  bool shapes_exchange = false;  // see config::KeyInfo
  bool changes_measure = false;  // see config::KeyInfo
  bool is_kept = true;           // in run.json
};

/// The rule of a topic, or of one of `keys`. A topic that this version does not know is told.
TopicRule rule_of(std::string_view topic, const std::vector<config::KeyInfo>& keys);
/// The same with recipe_keys().
TopicRule rule_of(std::string_view topic);

/// What the topic is about, as in "data.eval"; empty for a topic that stands for itself.
std::string_view subject_of(std::string_view topic);

}  // namespace decent
