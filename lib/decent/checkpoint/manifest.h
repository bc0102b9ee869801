#pragma once
// manifest.json of a checkpoint: what was saved, at which point of training, and the checksums that
// show whether it is whole. docs/checkpoints.md describes the file. Manifests may be damaged, so
// every field is checked.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decent/checkpoint/facts.h"

namespace decent {

/// Numbers with names, in order. Numbers that are not finite are not written.
using Numbers = std::vector<std::pair<std::string, double>>;
std::optional<double> find_number(const Numbers& numbers, std::string_view name);

/// A file in the folder of the checkpoint: a replica's, or Manifest::data.
struct CheckpointFile {
  std::string name;         // rank-0000.safetensors, data.json
  std::uint64_t bytes = 0;  // its size
  std::string checksum;     // see Checksum::hex
  /// If all workers had the same parameters and optimizer states: the replica whose file holds them
  /// for this one too, which may be this one itself. Nothing if every file holds its own.
  std::optional<std::int64_t> shared_in = {};
  bool operator==(const CheckpointFile&) const = default;
};

struct Manifest {
  std::string run = {};       // id of the run; empty if an older program saved it
  std::string program;        // version and build that saved it
  std::int64_t step = 0;      // updates done
  std::int64_t epoch = 0;     // the next update takes its samples from this epoch,
  std::int64_t consumed = 0;  // after this many samples (or batches) of it
  double epochs_done = 0;     // "epoch" as metrics.jsonl shows it
  std::int64_t world_size = 1;
  /// The evaluation of this step, {"loss", 0.1}, ..; empty if there was none.
  Numbers metrics = {};
  /// Whether that evaluation is still to come: the checkpoint was saved before it.
  bool evaluation_pending = false;
  /// What the run remembers of all its evaluations: {"stop.best", 0.1}, ..; empty if nothing
  /// depends on evaluations.
  Numbers evaluations = {};
  std::string recipe = {};                 // resolved, YAML
  Facts facts = {};                        // compared on resuming
  std::vector<CheckpointFile> files = {};  // by rank; without a name for a lost worker
  /// When the first of the lost workers was lost, in seconds since the epoch; nothing if none was.
  std::optional<double> lost_at = {};
  /// What the run has learned from its training data; nothing if an older program saved the
  /// checkpoint.
  std::optional<CheckpointFile> data = {};

  /// Whether all workers had the same parameters and optimizer states, bit for bit. Then not every
  /// file holds them.
  bool copies_alike() const { return !files.empty() && files.front().shared_in.has_value(); }
  /// The ranks of workers that were lost in the last step: there are no files of theirs. All
  /// others' files are whole, and a run resumes from the average of those.
  std::vector<int> lost() const;
  /// The replicas whose files hold parameters and optimizer state.
  std::vector<int> with_everything() const;
  bool operator==(const Manifest&) const = default;
};

/// JSON whose first line holds the checksum of all bytes that follow it.
std::string print_manifest(const Manifest& manifest);

/// Throws CheckpointDamaged naming `file` if the text is not what print_manifest wrote, UserError
/// if it has the format of a later version of this program.
Manifest parse_manifest(std::string_view text, std::string_view file);

constexpr const char* kManifestName = "manifest.json";
constexpr const char* kDataName = "data.json";

/// "rank-0003.safetensors", and the rank in such a name; -1 in any other.
std::string replica_file_name(std::int64_t rank);
int replica_in_name(std::string_view name);

}  // namespace decent
