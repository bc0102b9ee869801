#include "decent/train/fingerprint.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "decent/checkpoint/checksum.h"
#include "decent/comm/gather.h"
#include "decent/config/loader.h"
#include "decent/core/dtype.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"

namespace decent {
namespace {

constexpr std::size_t kMostTopics = 3;  // that one message names

// Keys that may differ between workers: paths, what is written and said, how fast data is read, and
// what the lines on device, model, data and topology say better.
bool may_differ(std::string_view key) {
  constexpr std::array<std::string_view, 12> kKeys = {
      "name",          "output",           "model.path",         "model.weights",
      "model.device",  "data.train",       "data.eval",          "data.threads",
      "data.prefetch", "parallel.backend", "parallel.timeout_s", "parallel.stall_s"};
  return key.starts_with("log.") || key == "parallel.local_world_size" ||
         std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

void add_tensors(const std::string& kind, const TorchScriptModel::NamedTensors& tensors,
                 Fingerprint& lines) {
  for (const auto& [name, tensor] : tensors) {
    lines.emplace_back(kind + " " + name,
                       dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes()));
  }
}

void add_data(const DataSet& data, Fingerprint& lines) {
  std::vector<std::string> fields;
  for (const Field& field : data.source->fields()) {
    fields.push_back(field.name + " " + std::string(name_of(field.dtype)) +
                     shape_text(field.shape));
  }
  lines.emplace_back("the fields of " + data.key, join(fields));
  lines.emplace_back("the number of samples of " + data.key, std::to_string(data.source->size()));
  lines.emplace_back(kContentTopic + data.key, data.content);
}

std::string topology_text(const std::vector<Phase>& phases) {
  std::string text;
  for (const Phase& phase : phases) {
    for (const Edge& edge : phase) {
      for (int rank : edge.ranks) text += std::to_string(rank) + " ";
      text += std::to_string(edge.weight) + ", ";
    }
    text += "; ";
  }
  return text;
}

std::string digest_of(const Fingerprint& fingerprint) {
  std::string text;
  for (const auto& [topic, value] : fingerprint) text += topic + '\0' + value + '\0';
  return checksum_of(text);
}

// What most workers have; rank 0's where there is no such majority.
std::size_t most_common(const std::vector<Fingerprint>& fingerprints) {
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

std::string shorten(const std::string& value) {
  constexpr std::size_t kLongest = 80;
  return value.size() <= kLongest ? value : value.substr(0, kLongest) + "..";
}

// One line per topic in which `own` differs from `common`.
std::vector<std::string> differences(const Fingerprint& own, const Fingerprint& common,
                                     const std::string& reference) {
  const std::map<std::string, std::string> theirs(common.begin(), common.end());
  std::map<std::string, std::string> rest = theirs;
  std::vector<std::string> lines;
  for (const auto& [topic, value] : own) {
    const auto found = theirs.find(topic);
    rest.erase(topic);
    if (found == theirs.end()) {
      lines.push_back(topic + " is not there on " + reference);
    } else if (found->second != value) {
      lines.push_back(topic + " is " + shorten(value) + ", on " + reference + " " +
                      shorten(found->second));
    }
  }
  for (const auto& [topic, value] : rest) lines.push_back(topic + " is only there on " + reference);
  return lines;
}

}  // namespace

Fingerprint fingerprint_of(const Task& task, const std::vector<Phase>& topology) {
  Fingerprint lines = facts_of(task, topology);
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [](const auto& line) { return may_differ(line.first); }),
              lines.end());
  return lines;
}

Fingerprint facts_of(const Task& task, const std::vector<Phase>& topology) {
  Fingerprint lines = recipe_values(task.recipe);
  lines.emplace_back("the device", task.device.device.is_cuda() ? "cuda" : "cpu");
  lines.emplace_back("the exchange", backend_name(task.device.backend));
  add_tensors("parameter", task.model->parameters(), lines);
  add_tensors("buffer", task.model->buffers(), lines);
  lines.emplace_back("the code of the model", task.model->code_hash());
  lines.emplace_back("the topology", topology_text(topology));
  if (task.train) add_data(*task.train, lines);
  if (task.eval) add_data(*task.eval, lines);
  return lines;
}

std::string difference_text(const std::vector<Fingerprint>& fingerprints) {
  const std::size_t common = most_common(fingerprints);
  std::vector<std::string> ranks;
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < fingerprints.size(); ++rank) {
    if (fingerprints[rank] == fingerprints[common]) continue;
    ranks.push_back(std::to_string(rank));
    if (lines.empty()) {
      lines =
          differences(fingerprints[rank], fingerprints[common], "rank " + std::to_string(common));
    }
  }
  if (ranks.empty()) return "";
  std::string text = "rank " + join(ranks) + " would not train what the other workers train" +
                     (ranks.size() > 1 ? " (details of rank " + ranks.front() + ")" : "") + ":";
  for (std::size_t i = 0; i < std::min(lines.size(), kMostTopics); ++i) text += "\n  " + lines[i];
  if (lines.size() > kMostTopics) {
    text += "\n  and " + std::to_string(lines.size() - kMostTopics) + " more";
  }
  return text;
}

void compare_workers(World& world, Task& task, const std::vector<Phase>& topology) {
  task.recipe.log.every_steps =
      world.gather("log.every_steps", task.recipe.log.every_steps).front();
  const Fingerprint own = fingerprint_of(task, topology);
  const std::vector<std::string> digests = world.gather("digest", digest_of(own));
  const bool all_agree = std::all_of(digests.begin(), digests.end(),
                                     [&](const auto& digest) { return digest == digests.front(); });
  if (all_agree) return;
  throw SharedError(ExitCode::user_error, difference_text(world.gather("fingerprint", own)));
}

}  // namespace decent
