#include "decent/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <system_error>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kLeastDigits = 8;
constexpr std::string_view kWriting = ".writing";
constexpr std::string_view kRemoving = ".removing";

void remove_tree(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::remove_all(path, failed);
  if (failed) throw WriteError("cannot remove '" + path.string() + "': " + failed.message());
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kLeastDigits) digits.insert(0, kLeastDigits - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

std::int64_t step_in_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return -1;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), step);
  const bool whole = failed == std::errc() && end == name.data() + name.size();
  return whole && step >= 0 && checkpoint_name(step).substr(kPrefix.size()) == name ? step : -1;
}

std::filesystem::path CheckpointFolder::path_of(std::int64_t step) const {
  return path_ / checkpoint_name(step);
}

std::filesystem::path CheckpointFolder::temporary(std::int64_t step, std::string_view doing) const {
  return path_ / ("." + checkpoint_name(step) + std::string(doing));
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> steps;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::int64_t step = step_in_name(entry->path().filename().string());
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

std::filesystem::path CheckpointFolder::begin(std::int64_t step) const {
  const std::filesystem::path folder = temporary(step, kWriting);
  create_folders(folder);
  return folder;
}

void CheckpointFolder::publish(const Manifest& manifest) const {
  const std::filesystem::path folder = temporary(manifest.step, kWriting);
  write_file(folder / "manifest.json", print_manifest(manifest));
  // Other workers' files were made durable by them; their names are by this.
  sync_folder(folder);
  const std::filesystem::path place = path_of(manifest.step);
  if (std::filesystem::exists(place)) {
    // Between the two renames the one that is replaced is not there; earlier ones are.
    remove_tree(temporary(manifest.step, kRemoving));
    rename_durably(place, temporary(manifest.step, kRemoving));
  }
  rename_durably(folder, place);
  sync_folder(path_ / "..");  // which has the name of this folder, perhaps a new one
  remove_tree(temporary(manifest.step, kRemoving));
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
  std::vector<std::filesystem::path> leftovers;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) continue;
    for (std::string_view doing : {kWriting, kRemoving}) {
      if (!name.ends_with(doing)) continue;
      const std::string inner = name.substr(1, name.size() - 1 - doing.size());
      if (step_in_name(inner) >= 0) leftovers.push_back(entry->path());
    }
  }
  for (const std::filesystem::path& path : leftovers) remove_tree(path);
}

}  // namespace decent
