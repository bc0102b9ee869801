#include "decent/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <optional>
#include <system_error>

#include "decent/checkpoint/checksum.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"

namespace decent {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::size_t kLeastDigits = 8;
constexpr std::string_view kWriting = ".writing";
constexpr std::string_view kRemoving = ".removing";

void remove_tree(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::remove_all(path, failed);
  if (failed) throw WriteError("cannot remove '" + path.string() + "': " + failed.message());
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

// The step in ".step-00000600.writing"; -1 in any other name.
std::int64_t step_in_temporary_name(const std::string& name, std::string_view doing) {
  if (!name.starts_with('.') || !name.ends_with(doing)) return -1;
  return step_in_name(name.substr(1, name.size() - 1 - doing.size()));
}

// Swaps the names of two folders, atomically if the file system can do that.
void exchange(const std::filesystem::path& a, const std::filesystem::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(b.parent_path());
    return;
  }
  std::filesystem::path aside = b;
  aside += ".replaced";
  rename_durably(b, aside);
  rename_durably(a, b);
  rename_durably(aside, a);
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kLeastDigits) digits.insert(0, kLeastDigits - digits.size(), '0');
  return std::string(kStepPrefix) + digits;
}

std::int64_t step_in_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return -1;
  name.remove_prefix(kStepPrefix.size());
  std::int64_t step = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), step);
  const bool whole = failed == std::errc() && end == name.data() + name.size();
  return whole && step >= 0 && checkpoint_name(step).substr(kStepPrefix.size()) == name ? step : -1;
}

std::filesystem::path CheckpointFolder::path_of(std::int64_t step) const {
  return path_ / checkpoint_name(step);
}

std::filesystem::path CheckpointFolder::temporary(std::int64_t step, std::string_view doing) const {
  return path_ / ("." + checkpoint_name(step) + std::string(doing));
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(path_)) {
    const std::int64_t step = step_in_name(name);
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

void CheckpointFolder::visit_manifests(
    const std::function<void(std::int64_t step, const Manifest& manifest)>& visit) const {
  for (const std::int64_t step : steps()) {
    std::optional<Manifest> manifest;
    try {
      const std::filesystem::path file = path_of(step) / kManifestName;
      manifest = parse_manifest(read_text(file), file.string());
    } catch (const Error&) {  // damaged, or of a later version: it tells nothing
      continue;
    }
    visit(step, *manifest);
  }
}

std::vector<std::int64_t> CheckpointFolder::steps_being_written() const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(path_)) {
    const std::int64_t step = step_in_temporary_name(name, kWriting);
    if (step >= 0) steps.push_back(step);
  }
  return steps;
}

std::filesystem::path CheckpointFolder::writing_path_of(std::int64_t step) const {
  return temporary(step, kWriting);
}

std::filesystem::path CheckpointFolder::begin(std::int64_t step) const {
  const std::filesystem::path folder = temporary(step, kWriting);
  create_folders(folder);
  return folder;
}

void CheckpointFolder::publish(const Manifest& manifest) const {
  const std::filesystem::path folder = temporary(manifest.step, kWriting);
  write_file(folder / kManifestName, print_manifest(manifest));
  // The other workers made their files durable; this makes the files' names durable.
  sync_folder(folder);
  const std::filesystem::path place = path_of(manifest.step);
  std::error_code failed;
  if (std::filesystem::exists(place, failed)) {
    exchange(folder, place);
    remove_tree(folder);  // now it holds the replaced checkpoint
  } else {
    rename_durably(folder, place);
  }
  sync_folder(path_ / "..");  // holds this folder's name, which may be new
}

void CheckpointFolder::replace_manifest(const Manifest& manifest) const {
  write_file(path_of(manifest.step) / kManifestName, print_manifest(manifest));
}

void CheckpointFolder::note_evaluation(std::int64_t step, const Numbers& metrics,
                                       const Numbers& evaluations) const {
  const std::filesystem::path file = path_of(step) / kManifestName;
  Manifest manifest = parse_manifest(read_text(file), file.string());
  manifest.metrics = metrics;
  manifest.evaluations = evaluations;
  manifest.evaluation_pending = false;
  write_file(file, print_manifest(manifest));
}

void CheckpointFolder::discard(std::int64_t step) const noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(temporary(step, kWriting), ignored);
}

void CheckpointFolder::remove(std::int64_t step) const {
  const std::filesystem::path removing = temporary(step, kRemoving);
  remove_tree(removing);
  rename_durably(path_of(step), removing);
  remove_tree(removing);
}

std::filesystem::path CheckpointFolder::set_aside(std::int64_t step) const {
  const std::filesystem::path folder = path_ / "set-aside";
  create_folders(folder);
  std::filesystem::path place = folder / checkpoint_name(step);
  for (int i = 2; std::filesystem::exists(place); ++i) {
    place = folder / (checkpoint_name(step) + "." + std::to_string(i));
  }
  rename_durably(path_of(step), place);
  sync_folder(path_);
  return place;
}

void CheckpointFolder::clear_leftovers() const {
  for (const std::string& name : names_in(path_)) {
    const bool leftover =
        step_in_temporary_name(name, kWriting) >= 0 || step_in_temporary_name(name, kRemoving) >= 0;
    if (leftover) remove_tree(path_ / name);
    if (step_in_name(name) < 0) continue;
    for (const std::string& file : names_in(path_ / name))  // left from replacing a manifest
      if (is_temporary_of(file, kManifestName)) remove_tree(path_ / name / file);
  }
}

void check_saved(std::string_view bytes, const CheckpointFile& expected, const std::string& file) {
  if (bytes.size() != expected.bytes) {
    throw CheckpointDamaged("'" + file + "' is damaged: it has " +
                            counted(std::ssize(bytes), "byte") + ", not " +
                            std::to_string(expected.bytes));
  }
  if (checksum_of(bytes) != expected.checksum) {
    throw CheckpointDamaged("'" + file + "' is damaged: its checksum is not that of manifest.json");
  }
}

std::optional<std::string> data_in_checkpoint(const std::filesystem::path& folder) {
  std::optional<CheckpointFile> expected;
  try {
    expected = parse_manifest(read_text(folder / kManifestName), kManifestName).data;
  } catch (const Error&) {  // whoever needs the checkpoint says what is wrong with it
  }
  if (!expected) return std::nullopt;
  const std::filesystem::path file = folder / expected->name;
  std::error_code failed;
  if (!std::filesystem::exists(file, failed))
    throw CheckpointDamaged("'" + folder.string() + "' is damaged: it has no " + expected->name);
  std::string text = read_text(file);
  check_saved(text, *expected, file.string());
  return text;
}

std::filesystem::path run_of_checkpoint(const std::filesystem::path& checkpoint) {
  std::error_code failed;
  const auto folder = std::filesystem::canonical(checkpoint, failed);
  return failed ? std::filesystem::path() : folder.parent_path().parent_path();
}

}  // namespace decent
