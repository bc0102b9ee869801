#include "decent/resume/checkpointer.h"

#include <algorithm>
#include <utility>

#include "decent/checkpoint/checksum.h"
#include "decent/checkpoint/retention.h"
#include "decent/comm/gather.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/parallel/named_tensors.h"
#include "decent/resume/compatibility.h"

namespace decent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CheckpointFile, name, bytes, checksum)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AddedLines, begin, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WrittenPart, file, lines)

namespace {

std::uint64_t size_of(const std::filesystem::path& file) {
  std::error_code absent;
  const std::uint64_t size = std::filesystem::file_size(file, absent);
  return absent ? 0 : size;
}

template <typename T>
using Attempts = std::vector<Attempt<T>>;

template <typename T>
bool has_value(const Attempt<T>& attempt) {
  return attempt.value.has_value();
}

bool has_done(const Attempt<bool>& attempt) { return attempt.value.value_or(false); }

// Empty if nobody failed.
template <typename T>
std::string first_message(const Attempts<T>& attempts) {
  const auto failed = std::ranges::find_if(
      attempts, [](const auto& attempt) { return !attempt.outcome.message.empty(); });
  return failed == attempts.end() ? "" : failed->outcome.message;
}

}  // namespace

// Unreadable checkpoints are neither counted nor removed: somebody may still want to look at them.
void prune_checkpoints(const CheckpointFolder& folder, const CheckpointRecipe& recipe,
                       bool higher_is_better) {
  std::vector<Evaluated> evaluated;
  folder.visit_manifests([&](std::int64_t step, const Manifest& manifest) {
    evaluated.push_back({step, manifest.metrics, measure_of(manifest.facts)});
  });
  const std::vector<Kept> kept = comparable_scores(evaluated, recipe.keep_best.value_or(""));
  for (std::int64_t step : checkpoints_to_remove(kept, recipe.keep, higher_is_better)) {
    folder.remove(step);
  }
}

Checkpointer::Checkpointer(CheckpointerOptions options)
    : options_(std::move(options)), given_(size_of(options_.metrics)) {
  const std::string& data = options_.data;
  if (data.empty()) return;
  options_.manifest.data =
      CheckpointFile{.name = kDataName, .bytes = data.size(), .checksum = checksum_of(data)};
}

Checkpointer::~Checkpointer() {
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

std::optional<double> Checkpointer::take_seconds() {
  const std::lock_guard lock(mutex_);
  return std::exchange(seconds_, std::nullopt);
}

void Checkpointer::wait() {
  if (thread_.joinable()) thread_.join();
  check();
}

void Checkpointer::save(const Progress& progress, const NamedTensors& state, bool in_background) {
  wait();
  const auto begin = Clock::now();
  image_.copy(options_.copies_alike && !leads() ? parts_of(state).own : state);
  last_step_ = progress.step;
  start(in_background, [this, progress, begin] { write(progress, begin); });
}

void Checkpointer::note_evaluation(const Numbers& metrics, const Numbers& evaluations,
                                   bool in_background) {
  wait();
  start(in_background,
        [this, step = last_step_, metrics, evaluations] { amend(step, metrics, evaluations); });
}

void Checkpointer::start(bool in_background, const std::function<void()>& work) {
  ++saves_;
  const auto keeping = [this, work] {
    try {
      work();
    } catch (...) {
      keep_failure();
    }
  };
  if (options_.recipe.background && in_background) {
    thread_ = std::thread(keeping);
  } else {
    keeping();
    check();
  }
}

// ---- the writing thread ---------------------------------------------------------------------

// Keeps only this worker's failures: a failure of another worker ends the run by itself.
void Checkpointer::keep_failure() noexcept {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::current_exception();
}

void Checkpointer::write(const Progress& progress, Clock::time_point begin) {
  const auto manifest = write_replicas(progress);
  const bool published = manifest && publish(*manifest);
  if (published) published_step_ = progress.step;
  {
    const std::lock_guard lock(mutex_);
    seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  if (!leads()) return;
  if (!published) {
    options_.folder.discard(progress.step);  // makes room on a full disk
  } else if (!progress.evaluation_pending) {
    prune_checkpoints(options_.folder, options_.recipe, options_.higher_is_better);
  }
}

std::string Checkpointer::stage_name(const std::string& stage) const {
  return "checkpoint/" + std::to_string(saves_) + "/" + stage;
}

// The stage, whose error is also kept for the training thread to throw again.
template <typename Stage>
auto Checkpointer::keeping_failure(Stage stage) {
  return [this, stage] {
    try {
      return stage();
    } catch (...) {
      keep_failure();
      throw;
    }
  };
}

// Returns the manifest of the files that are durable now; nothing if a worker's part failed.
std::optional<Manifest> Checkpointer::write_replicas(const Progress& progress) {
  const auto written = options_.team.attempt(stage_name("written"),
                                             keeping_failure([&] { return write_own(progress); }));
  if (!all_done(outcomes_of(written))) return std::nullopt;
  lines_ = written[Team::kSpeaker].value->lines;
  Manifest manifest = manifest_of(progress);
  for (const int rank : progress.workers.ranks) {
    CheckpointFile file = written[static_cast<std::size_t>(rank)].value.value().file;
    if (options_.copies_alike)
      file.shared_in = progress.workers.place_of(options_.leaders.of(rank));
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

// Without the files.
Manifest Checkpointer::manifest_of(const Progress& progress) const {
  Manifest manifest = options_.manifest;
  manifest.world_size = progress.workers.size();
  manifest.step = progress.step;
  manifest.epoch = progress.epoch;
  manifest.consumed = progress.consumed;
  manifest.epochs_done = progress.epochs_done;
  manifest.metrics = progress.metrics;
  manifest.evaluation_pending = progress.evaluation_pending;
  manifest.evaluations = progress.evaluations;
  manifest.lost_at = progress.lost_at;
  return manifest;
}

WrittenPart Checkpointer::write_own(const Progress& progress) {
  if (const auto name = image_.non_finite()) {
    throw Error(ExitCode::diverged,
                "training diverged: parameter '" + *name + "' is not finite after step " +
                    std::to_string(progress.step) + ", so that no checkpoint was saved");
  }
  options_.team.control().catch_up();
  const int replica = progress.workers.place_of(options_.team.rank());
  const std::filesystem::path folder = options_.folder.begin(progress.step);
  CheckpointFile file = write_replica(folder, replica, image_.bytes());
  if (leads() && !options_.data.empty()) write_file(folder / kDataName, options_.data);
  return {.file = std::move(file), .lines = new_lines()};
}

// The lines of the metrics that other folders lack, which are durable here.
AddedLines Checkpointer::new_lines() {
  options_.before_publishing();
  if (!options_.team.speaks() || !options_.leaders.has_several_folders()) return {};
  return lines_from(options_.metrics, given_);
}

void Checkpointer::keep_lines() const {
  if (!options_.leaders.shares_with_speaker(options_.team.rank()) && !lines_.text.empty())
    put_lines(options_.metrics, lines_);
}

bool Checkpointer::publish(const Manifest& manifest) {
  const auto published = options_.team.attempt(stage_name("published"), keeping_failure([&] {
                                                 if (!leads()) return;
                                                 keep_lines();
                                                 options_.folder.publish(manifest);
                                               }));
  if (!all_done(published)) return false;
  given_ += lines_.text.size();
  return true;
}

// ---- a farewell -----------------------------------------------------------------------------

// Whether all of that step's files are in folders that workers who are left can read.
bool Checkpointer::is_complete_without(const std::set<int>& lost, std::int64_t step) const {
  return published_step_ == step && std::ranges::none_of(lost, [&](int rank) {
           return lost.contains(options_.leaders.of(rank));
         });
}

// Workers may be found to be silent one after another, so that the answer changes.
bool Checkpointer::saves() const { return options_.team.control().farewell().saves(); }

// Whether that step was saved before, with all workers.
bool Checkpointer::is_saved_without(const std::set<int>& lost, std::int64_t step) const {
  const auto complete = options_.team.attempt_of_survivors(
      "farewell/complete", [&] { return is_complete_without(lost, step); });
  return std::ranges::any_of(complete, has_done);
}

// A thread that writes an earlier step gives up by itself (Control::gather). Its errors do not
// count any more.
std::optional<std::string> Checkpointer::save_of_survivors(
    const Progress& progress, const NamedTensors& state, const std::function<void()>& take_folder) {
  if (thread_.joinable()) thread_.join();
  failure_ = nullptr;
  const Team& team = options_.team;
  const std::set<int> lost = team.control().farewell().lost();
  options_.leaders = options_.leaders.without(lost);
  if (is_saved_without(lost, progress.step)) return std::nullopt;
  if (!saves()) return "";
  options_.copies_alike = false;
  last_step_ = progress.step;
  const auto ready = team.attempt_of_survivors("farewell/ready", [&] {
    image_ = ReplicaImage();  // an earlier one may have had only a part of the state
    image_.copy(state);
    if (!leads()) return true;
    take_folder();
    options_.folder.clear_leftovers();  // of a save that was given up
    return true;
  });
  const int leader = options_.leaders.of(team.rank());
  const Outcome& of_leader = ready[static_cast<std::size_t>(leader)].outcome;
  const auto written = team.attempt_of_survivors("farewell/written", [&] {
    if (of_leader.code != ExitCode::done) throw Error(of_leader.code, of_leader.message);
    return write_own(progress);
  });
  if (std::ranges::none_of(written, has_value<WrittenPart>)) {
    discard_as_survivor(progress.step);
    return first_message(written);
  }
  const auto& of_speaker = written[Team::kSpeaker].value;
  lines_ = of_speaker ? of_speaker->lines : AddedLines();
  const Manifest manifest = manifest_of_survivors(progress, written);
  const auto why_not = publish_with_survivors(manifest, of_leader.code == ExitCode::done);
  discard_as_survivor(progress.step);
  if (!why_not && leads())
    prune_checkpoints(options_.folder, options_.recipe, options_.higher_is_better);
  return why_not;
}

// What has not appeared in this folder, which makes room on a full disk. The other part of a run
// that was cut in two may be writing it.
void Checkpointer::discard_as_survivor(std::int64_t step) const {
  if (leads() && saves()) options_.folder.discard(step);
}

// Should one more worker be lost meanwhile, not all have received the same parts. The lowest one's
// list counts for all.
Manifest Checkpointer::manifest_of_survivors(
    const Progress& progress, const std::vector<Attempt<WrittenPart>>& written) const {
  Manifest own = manifest_of(progress);
  for (const int rank : progress.workers.ranks) {
    const auto& part = written[static_cast<std::size_t>(rank)].value;
    own.files.push_back(part ? part->file : CheckpointFile());
  }
  const auto manifests =
      options_.team.attempt_of_survivors("farewell/manifest", [&] { return print_manifest(own); });
  const auto first = std::ranges::find_if(manifests, has_value<std::string>);
  return parse_manifest(*first->value, "manifest.json");
}

// If the leader of a folder is lost meanwhile, the next one publishes there. Returns why no folder
// has the checkpoint; nothing if one has it.
std::optional<std::string> Checkpointer::publish_with_survivors(const Manifest& manifest,
                                                                bool folder_is_ready) {
  const Team& team = options_.team;
  std::optional<std::string> why_not = "";
  std::set<int> lost;
  do {
    lost = team.control().farewell().lost();
    options_.leaders = options_.leaders.without(lost);
    const auto published = team.attempt_of_survivors("farewell/published", [&] {
      return leads() && folder_is_ready && saves() && publish_as_survivor(manifest, lost);
    });
    if (std::ranges::any_of(published, has_done)) why_not.reset();
    if (why_not && why_not->empty()) why_not = first_message(published);
  } while (team.control().farewell().lost() != lost);
  return why_not;
}

// The files in folders of which all workers are lost are no part of the checkpoint. Returns whether
// it is there now.
bool Checkpointer::publish_as_survivor(Manifest manifest, const std::set<int>& lost) {
  const CheckpointFolder& folder = options_.folder;
  for (int rank = 0; rank < static_cast<int>(manifest.files.size()); ++rank) {
    if (lost.contains(options_.leaders.of(rank)))
      manifest.files[static_cast<std::size_t>(rank)] = CheckpointFile();
  }
  const std::filesystem::path writing = folder.writing_path_of(manifest.step);
  if (std::filesystem::exists(writing)) {
    // The leader that was to write it may have failed or be lost.
    if (!options_.data.empty()) write_file(writing / kDataName, options_.data);
    keep_lines();
    folder.publish(manifest);
  } else if (std::filesystem::exists(folder.path_of(manifest.step))) {
    folder.replace_manifest(manifest);
  } else {
    return false;
  }
  return true;
}

// The evaluation's lines in the metrics are durable before any manifest says that there was an
// evaluation, so that a run never resumes after an evaluation whose lines are lost.
void Checkpointer::amend(std::int64_t step, const Numbers& metrics, const Numbers& evaluations) {
  const Team& team = options_.team;
  const auto lines =
      team.attempt(stage_name("lines"), keeping_failure([this] { return new_lines(); }));
  if (!all_done(outcomes_of(lines))) return;
  lines_ = lines[Team::kSpeaker].value.value();
  const auto amended = team.attempt(stage_name("evaluated"), keeping_failure([&] {
                                      if (!leads()) return;
                                      keep_lines();
                                      options_.folder.note_evaluation(step, metrics, evaluations);
                                    }));
  if (!all_done(amended)) return;
  given_ += lines_.text.size();
  if (leads()) prune_checkpoints(options_.folder, options_.recipe, options_.higher_is_better);
}

}  // namespace decent
