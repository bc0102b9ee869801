#include "decent/train/fingerprint.h"

#include <algorithm>

#include "decent/checkpoint/checksum.h"
#include "decent/comm/gather.h"
#include "decent/config/keys.h"
#include "decent/config/loader.h"
#include "decent/config/option_keys.h"
#include "decent/core/dtype.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/resume/topics.h"
#include "decent/train/methods.h"

namespace decent {
namespace {

void add_tensors(const std::string& kind, const Model::NamedTensors& tensors, Facts& lines) {
  for (const auto& [name, tensor] : tensors) {
    lines.emplace_back(kind + name, dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes()));
  }
}

void add_data(const DataSet& data, Facts& lines) {
  std::vector<std::string> fields;
  for (const Field& field : data.samples->source().fields()) {
    fields.push_back(field.name + " " + std::string(name_of(field.dtype)) +
                     shape_text(field.shape));
  }
  lines.emplace_back(kFieldsTopic + data.key, join(fields));
  lines.emplace_back(kSamplesTopic + data.key, std::to_string(data.size()));
  lines.emplace_back(kContentTopic + data.key, data.content);
}

// Adds what data.json would hold, which each machine keeps.
void add_learned(const LearnedData& data, Facts& lines) {
  if (!data.is_whole()) return;
  const std::string about = "what data.train teaches: ";
  lines.emplace_back(about + "format", data.format);
  for (const auto& [name, value] : data.keys.all())
    lines.emplace_back(about + "key " + name, config::print_option(value));
  for (const auto& [name, value] : data.learned.all())
    lines.emplace_back(about + name, config::print_option(value));
  lines.emplace_back(about + "classes", join(data.classes));
}

std::string target_transforms(const Recipe& recipe) {
  std::vector<std::string> texts;
  for (const TransformRecipe& each : recipe.data.transforms_of_evaluation()) {
    const auto* field = std::get_if<std::string>(&each.options.value("field"));
    if (field == nullptr || *field != recipe.model.target) continue;
    std::string text = each.name;
    for (const auto& [name, value] : each.options.all())
      text += " " + name + ": " + config::print_option(value);
    texts.push_back(text);
  }
  return texts.empty() ? "none" : join(texts, "; ");
}

std::string topology_text(const std::vector<Phase>& phases) {
  std::string text;
  for (const Phase& phase : phases) {
    for (const Edge& edge : phase) {
      for (int rank : edge.ranks) text += std::to_string(rank) + " ";
      text += std::to_string(edge.self_weight) + ", ";
    }
    text += "; ";
  }
  return text;
}

template <typename Number>
std::string numbers_text(const std::vector<Number>& numbers) {
  std::vector<std::string> texts;
  for (const Number number : numbers) texts.push_back(std::to_string(number));
  return join(texts, " ");
}

std::string digest_of(const Facts& fingerprint) {
  std::string text;
  for (const auto& [topic, value] : fingerprint) text += topic + '\0' + value + '\0';
  return checksum_of(text);
}

// The rank of the fingerprint that most workers have; of equally common ones, the lowest rank.
std::size_t most_common(const std::vector<Facts>& fingerprints) {
  std::size_t best = 0;
  std::ptrdiff_t votes = 0;
  for (std::size_t rank = 0; rank < fingerprints.size(); ++rank) {
    const auto same = std::count(fingerprints.begin(), fingerprints.end(), fingerprints[rank]);
    if (same <= votes) continue;
    best = rank;
    votes = same;
  }
  return best;
}

// One line per topic in which `own` differs from `common`.
std::vector<std::string> difference_lines(const Facts& own, const Facts& common,
                                          const std::string& reference) {
  std::vector<std::string> lines;
  for (const auto& [topic, here, there] : differences(own, common)) {
    if (!there) {
      lines.push_back(topic + " is not there on " + reference);
    } else if (!here) {
      lines.push_back(topic + " is only there on " + reference);
    } else {
      lines.push_back(topic + " is " + shorten(*here) + ", on " + reference + " " +
                      shorten(*there));
    }
  }
  return lines;
}

}  // namespace

Facts fingerprint_of(const Task& task, const std::vector<Phase>& topology) {
  Facts facts = facts_of(task, topology);
  add_learned(task.learned, facts);
  for (const config::KeyInfo& key : config::recipe_keys()) {
    if (key.may_differ)
      std::erase_if(facts, [&](const auto& fact) { return fact.first == key.name; });
  }
  return facts;
}

Facts facts_of(const Task& task, const std::vector<Phase>& topology) {
  Facts lines = recipe_values(task.recipe);
  lines.emplace_back("the device", task.device.device.is_cuda() ? "cuda" : "cpu");
  lines.emplace_back("the exchange", backend_name(task.device.backend));
  add_tensors(kParameterTopic, task.model->parameters(), lines);
  add_tensors(kBufferTopic, task.model->buffers(), lines);
  if (task.lora) {
    lines.emplace_back(kBaseTopic, task.lora->base);
    lines.emplace_back(kAdaptersTopic, task.lora->adapters);
  }
  lines.emplace_back(kCodeTopic, task.model->code_hash());
  lines.emplace_back(kTopologyTopic, topology_text(topology));
  if (task.train) add_data(*task.train, lines);
  if (task.eval) {
    add_data(*task.eval, lines);
    lines.emplace_back(kTargetTopic, target_transforms(task.recipe));
  }
  if (task.predict) add_data(*task.predict, lines);
  return lines;
}

Facts facts_of(const Run& run) {
  Facts facts = facts_of(run.task, run.plan.topology);
  facts.emplace_back(kRatesTopic, run.plan.rates.text);
  if (!run.plan.topology_otherwise.empty())
    facts.emplace_back(kTopologyInEffect, run.plan.topology_otherwise);
  if (!run.task.recipe.data.batch_size.is_one())
    facts.emplace_back(kBatchSizesTopic, numbers_text(run.plan.sampler->batch_sizes()));
  const ParallelRecipe& parallel = run.task.recipe.parallel;
  if (method_of(run).averages_weights && parallel.comm_dtype_within)
    facts.emplace_back(kPlacementTopic, numbers_text(run.plan.machines));
  return facts;
}

bool has_ema(const Manifest& manifest) {
  const std::string decay = value_of(manifest.facts, "optimizer.ema");
  return !decay.empty() && decay != "null";
}

std::string difference_text(const std::vector<Facts>& fingerprints) {
  const std::size_t common = most_common(fingerprints);
  std::vector<std::string> ranks;
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < fingerprints.size(); ++rank) {
    if (fingerprints[rank] == fingerprints[common]) continue;
    ranks.push_back(std::to_string(rank));
    if (lines.empty()) {
      lines = difference_lines(fingerprints[rank], fingerprints[common],
                               "rank " + std::to_string(common));
    }
  }
  if (ranks.empty()) return "";
  return "rank " + join(ranks) + " would not train what the other workers train" +
         (ranks.size() > 1 ? " (details of rank " + ranks.front() + ")" : "") + ":" +
         first_lines(lines);
}

void compare_workers(World& world, Task& task, const std::vector<Phase>& topology) {
  task.recipe.log.every_steps =
      world.gather("log.every_steps", task.recipe.log.every_steps).front();
  const Facts own = fingerprint_of(task, topology);
  const std::vector<std::string> digests = world.gather("digest", digest_of(own));
  const bool all_agree = std::all_of(digests.begin(), digests.end(),
                                     [&](const auto& digest) { return digest == digests.front(); });
  if (all_agree) return;
  throw SharedError(ExitCode::user_error, difference_text(world.gather("fingerprint", own)));
}

}  // namespace decent
