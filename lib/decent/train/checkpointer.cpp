#include "decent/train/checkpointer.h"

#include <algorithm>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/train/pruning.h"

namespace decent {
namespace {

// A worker's file as it tells the others: name, bytes, checksum.
std::string encode(const CheckpointFile& file) {
  return file.name + " " + std::to_string(file.bytes) + " " + file.checksum;
}

CheckpointFile decode(const std::string& text) {
  const std::size_t first = text.find(' ');
  const std::size_t second = text.find(' ', first + 1);
  return {.name = text.substr(0, first),
          .bytes = std::stoull(text.substr(first + 1, second - first - 1)),
          .checksum = text.substr(second + 1)};
}

bool all_done(const std::vector<Outcome>& outcomes) {
  return std::all_of(outcomes.begin(), outcomes.end(),
                     [](const Outcome& outcome) { return outcome.code == ExitCode::done; });
}

}  // namespace

Checkpointer::Checkpointer(CheckpointerOptions options) : options_(std::move(options)) {}

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

void Checkpointer::save(const Moment& moment, const NamedTensors& state, bool may_go_on) {
  wait();
  const auto begin = Clock::now();
  image_.copy(state);
  ++saves_;
  last_step_ = moment.step;
  if (options_.recipe.background && may_go_on) {
    thread_ = std::thread([this, moment, begin] { write(moment, begin); });
  } else {
    write(moment, begin);
    check();
  }
}

// ---- the writing thread ---------------------------------------------------------------------

// Only this worker's own failures are kept: another one's ends the run by itself.
void Checkpointer::write(const Moment& moment, Clock::time_point begin) noexcept {
  try {
    Manifest manifest = options_.manifest;
    const bool published = write_parts(moment, manifest) && agree("published", [&] {
                             if (options_.leads) options_.folder.publish(manifest);
                             return std::string();
                           });
    {
      const std::lock_guard lock(mutex_);
      seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    if (!options_.leads) return;
    if (published) {
      prune_checkpoints(options_.folder, options_.recipe);
    } else {
      options_.folder.discard(moment.step);  // makes room on a full disk
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

// Runs a part of the save on every worker. False where it failed on any of them.
bool Checkpointer::agree(const std::string& stage, const std::function<std::string()>& work,
                         std::vector<Outcome>* outcomes) {
  Outcome own;
  try {
    own.message = work();
  } catch (const std::exception& error) {
    // Whatever it is, the others must hear of it: they wait.
    const auto* known = dynamic_cast<const Error*>(&error);
    own = {known != nullptr ? known->code() : ExitCode::bug, error.what()};
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  const std::vector<Outcome> all =
      options_.gather("checkpoint/" + std::to_string(saves_) + "/" + stage, own);
  if (outcomes != nullptr) *outcomes = all;
  return all_done(all);
}

bool Checkpointer::write_parts(const Moment& moment, Manifest& manifest) {
  std::vector<Outcome> outcomes;
  const bool written = agree(
      "written",
      [&] {
        if (const auto name = image_.non_finite()) {
          throw Error(ExitCode::diverged,
                      "training diverged: parameter '" + *name + "' is not finite after step " +
                          std::to_string(moment.step) + ", so that no checkpoint was saved");
        }
        const std::filesystem::path folder = options_.folder.begin(moment.step);
        const CheckpointFile file = write_replica(folder, options_.rank, image_.bytes());
        options_.before_publishing();
        return encode(file);
      },
      &outcomes);
  if (!written) return false;
  manifest.step = moment.step;
  manifest.epoch = moment.epoch;
  manifest.consumed = moment.consumed;
  manifest.epochs_done = moment.epochs_done;
  manifest.metrics = moment.metrics;
  manifest.files.clear();
  for (const Outcome& outcome : outcomes) manifest.files.push_back(decode(outcome.message));
  return true;
}

}  // namespace decent
