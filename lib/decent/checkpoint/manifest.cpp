#include "decent/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "decent/checkpoint/checksum.h"
#include "decent/core/error.h"

namespace decent {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "decent-train checkpoint";
// Version 1: every file holds all of its worker's state. kSharedVersion: some files hold parameters
// and optimizer state for other workers too, which a program that knows only version 1 must not
// misread. kLostVersion: files of lost workers are missing.
constexpr int kVersion = 1;
constexpr int kSharedVersion = 2;
constexpr int kLostVersion = 3;
// The first line around the checksum, which covers every byte after it.
constexpr std::string_view kBegin = "{\"checksum\": \"";
constexpr std::string_view kManifestEnd = "\",\n";
constexpr std::size_t kChecksumDigits = 32;

// Reads fields of one object; a value of another kind is damage.
class ManifestReader {
 public:
  ManifestReader(const Json& object, std::string_view file) : object_(object), file_(file) {
    if (!object.is_object()) fail("an object was expected");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw CheckpointDamaged("'" + std::string(file_) + "' is damaged: " + what);
  }

  const Json& field(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(std::string(key) + " is missing");
    return *found;
  }

  std::string text(const char* key) const {
    const Json& value = field(key);
    if (!value.is_string()) fail(std::string(key) + " is not a text");
    return value.get<std::string>();
  }

  // Some keys came after the first version of the format.
  bool has(const char* key) const { return object_.contains(key); }
  std::string optional_text(const char* key) const { return has(key) ? text(key) : std::string(); }

  // Counts are at least `least`.
  std::int64_t count(const char* key, std::int64_t least = 0) const {
    const Json& value = field(key);
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
    if (!fits || value.get<std::int64_t>() < least) fail(std::string(key) + " is not a count");
    return value.get<std::int64_t>();
  }

  double number(const char* key) const {
    const Json& value = field(key);
    if (!value.is_number()) fail(std::string(key) + " is not a number");
    return value.get<double>();
  }

  bool flag(const char* key) const {
    const Json& value = field(key);
    if (!value.is_boolean()) fail(std::string(key) + " is neither true nor false");
    return value.get<bool>();
  }

  const Json& list(const char* key) const {
    const Json& value = field(key);
    if (!value.is_array()) fail(std::string(key) + " is not a list");
    return value;
  }

 private:
  const Json& object_;
  std::string_view file_;
};

// The text without its first line. Throws if the checksum in that line does not match the rest.
std::string_view checked_body(std::string_view text, std::string_view file) {
  const auto fail = [&](const std::string& what) {
    throw CheckpointDamaged("'" + std::string(file) + "' is damaged: " + what);
  };
  const std::size_t head = kBegin.size() + kChecksumDigits + kManifestEnd.size();
  if (text.size() < head || !text.starts_with(kBegin) ||
      text.substr(head - kManifestEnd.size(), kManifestEnd.size()) != kManifestEnd) {
    fail("it does not begin with a checksum");
  }
  const std::string_view body = text.substr(head);
  if (checksum_of(body) != text.substr(kBegin.size(), kChecksumDigits)) {
    fail("its checksum does not fit");
  }
  return body;
}

Numbers read_numbers(const ManifestReader& reader, const char* key) {
  const Json& object = reader.field(key);
  if (!object.is_object()) reader.fail(std::string(key) + " is not an object");
  Numbers numbers;
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;  // not finite
    if (!value.is_number()) reader.fail(std::string(key) + " holds more than numbers");
    numbers.emplace_back(name, value.get<double>());
  }
  return numbers;
}

void read_facts(const ManifestReader& reader, Manifest& manifest) {
  const Json& facts = reader.field("facts");
  if (!facts.is_object()) reader.fail("facts is not an object");
  for (const auto& [topic, value] : facts.items()) {
    if (!value.is_string()) reader.fail("facts holds more than texts");
    manifest.facts.emplace_back(topic, value.get<std::string>());
  }
}

CheckpointFile read_file(const ManifestReader& fields) {
  return {.name = fields.text("name"),
          .bytes = static_cast<std::uint64_t>(fields.count("bytes")),
          .checksum = fields.text("xxh3_128")};
}

void read_data(const ManifestReader& reader, std::string_view file, Manifest& manifest) {
  if (!reader.has("data")) return;
  manifest.data = read_file(ManifestReader(reader.field("data"), file));
  if (manifest.data->name != kDataName) reader.fail("data is not " + std::string(kDataName));
}

// Adds an entry without a name for each worker that was lost and comes next.
void skip_lost(const std::vector<std::int64_t>& lost, Manifest& manifest) {
  while (std::ranges::count(lost, std::ssize(manifest.files)) > 0) manifest.files.emplace_back();
}

std::vector<std::int64_t> read_lost(const ManifestReader& reader) {
  std::vector<std::int64_t> lost;
  for (const Json& rank : reader.list("lost")) {
    if (!rank.is_number_integer()) reader.fail("lost holds more than ranks");
    lost.push_back(rank.get<std::int64_t>());
  }
  return lost;
}

// `shared`: each file says which file holds its parameters and optimizer state.
void read_files(const ManifestReader& reader, std::string_view file, bool shared,
                const std::vector<std::int64_t>& lost, Manifest& manifest) {
  skip_lost(lost, manifest);
  for (const Json& entry : reader.list("files")) {
    const ManifestReader fields(entry, file);
    CheckpointFile listed = read_file(fields);
    if (shared) listed.shared_in = fields.count("shared_in");
    // Only expected names are taken, so that a manifest cannot point to any other path.
    if (listed.name != replica_file_name(static_cast<std::int64_t>(manifest.files.size()))) {
      reader.fail("files are not those of the ranks in their order");
    }
    manifest.files.push_back(listed);
    skip_lost(lost, manifest);
  }
  if (manifest.files.size() != static_cast<std::size_t>(manifest.world_size)) {
    reader.fail("files does not have one file for each of world_size workers");
  }
  for (const CheckpointFile& each : manifest.files) {
    if (!shared) break;
    const std::int64_t holder = *each.shared_in;
    if (holder >= manifest.world_size ||
        manifest.files[static_cast<std::size_t>(holder)].shared_in != holder) {
      reader.fail("shared_in names a file that does not hold what is shared");
    }
  }
}

int version_of(const Manifest& manifest) {
  if (!manifest.lost().empty()) return kLostVersion;
  return manifest.copies_alike() ? kSharedVersion : kVersion;
}

Json json_of(const Numbers& numbers) {
  Json json = Json::object();
  for (const auto& [name, value] : numbers) json[name] = value;
  return json;
}

Json json_of(const CheckpointFile& file) {
  Json json = {{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.checksum}};
  if (file.shared_in) json["shared_in"] = *file.shared_in;
  return json;
}

}  // namespace

std::optional<double> find_number(const Numbers& numbers, std::string_view name) {
  for (const auto& [each, value] : numbers)
    if (each == name) return value;
  return std::nullopt;
}

std::vector<int> Manifest::with_everything() const {
  std::vector<int> replicas;
  for (int replica = 0; replica < static_cast<int>(files.size()); ++replica) {
    const CheckpointFile& file = files[static_cast<std::size_t>(replica)];
    if (!file.name.empty() && file.shared_in.value_or(replica) == replica)
      replicas.push_back(replica);
  }
  return replicas;
}

std::vector<int> Manifest::lost() const {
  std::vector<int> lost;
  for (int replica = 0; replica < static_cast<int>(files.size()); ++replica) {
    if (files[static_cast<std::size_t>(replica)].name.empty()) lost.push_back(replica);
  }
  return lost;
}

std::string replica_file_name(std::int64_t rank) {
  char name[48];
  std::snprintf(name, sizeof name, "rank-%04lld.safetensors", static_cast<long long>(rank));
  return name;
}

int replica_in_name(std::string_view name) {
  constexpr std::string_view kPrefix = "rank-";
  if (!name.starts_with(kPrefix)) return -1;
  const std::string_view digits = name.substr(kPrefix.size());
  int rank = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (failed != std::errc() || end == digits.data() || rank < 0) return -1;
  return replica_file_name(rank) == name ? rank : -1;
}

std::string print_manifest(const Manifest& manifest) {
  Json facts = Json::object();
  for (const auto& [topic, value] : manifest.facts) facts[topic] = value;
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) {
    if (!file.name.empty()) files.push_back(json_of(file));
  }
  const std::vector<int> lost = manifest.lost();
  Json json = {{"format", kFormat},
               {"version", version_of(manifest)},
               {"run", manifest.run},
               {"program", manifest.program},
               {"step", manifest.step},
               {"epoch", manifest.epoch},
               {"consumed", manifest.consumed},
               {"epochs_done", manifest.epochs_done},
               {"world_size", manifest.world_size},
               {"metrics", json_of(manifest.metrics)},
               {"evaluations", json_of(manifest.evaluations)},
               {"files", files},
               {"recipe", manifest.recipe},
               {"facts", facts}};
  if (manifest.evaluation_pending) json["evaluation_pending"] = true;
  if (!lost.empty()) json["lost"] = lost;
  if (!lost.empty() && manifest.lost_at) json["lost_at"] = *manifest.lost_at;
  if (manifest.data) json["data"] = json_of(*manifest.data);
  // Values come from recipes and names of tensors, which need not be UTF-8.
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  const std::string body = text.substr(text.find('\n') + 1) + "\n";  // without the brace
  return std::string(kBegin) + checksum_of(body) + std::string(kManifestEnd) + body;
}

Manifest parse_manifest(std::string_view text, std::string_view file) {
  const std::string_view body = checked_body(text, file);
  const Json json = Json::parse("{" + std::string(body), nullptr, /*allow_exceptions=*/false);
  const ManifestReader reader(json, file);
  if (reader.text("format") != kFormat) reader.fail("it is not a checkpoint of decent-train");
  const std::int64_t version = reader.count("version");
  if (version < kVersion || version > kLostVersion) {
    throw UserError("'" + std::string(file) + "' has version " + std::to_string(version) +
                    " of the format; this program reads versions " + std::to_string(kVersion) +
                    " to " + std::to_string(kLostVersion));
  }
  Manifest manifest{.run = reader.optional_text("run"),
                    .program = reader.text("program"),
                    .step = reader.count("step"),
                    .epoch = reader.count("epoch"),
                    .consumed = reader.count("consumed"),
                    .epochs_done = reader.number("epochs_done"),
                    .world_size = reader.count("world_size", 1),
                    .recipe = reader.text("recipe")};
  manifest.metrics = read_numbers(reader, "metrics");
  manifest.evaluation_pending =
      reader.has("evaluation_pending") && reader.flag("evaluation_pending");
  if (reader.has("evaluations")) manifest.evaluations = read_numbers(reader, "evaluations");
  read_facts(reader, manifest);
  read_files(reader, file, version == kSharedVersion,
             version == kLostVersion ? read_lost(reader) : std::vector<std::int64_t>(), manifest);
  if (version == kLostVersion && reader.has("lost_at")) manifest.lost_at = reader.number("lost_at");
  read_data(reader, file, manifest);
  return manifest;
}

}  // namespace decent
