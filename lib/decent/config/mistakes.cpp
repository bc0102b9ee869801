#include "decent/config/mistakes.h"

#include <algorithm>
#include <tuple>

#include "decent/config/scalars.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent::config {
namespace {

// More lines than anyone reads; a file that is no recipe at all can have thousands of mistakes.
constexpr std::size_t kMaxReported = 100;
// No name of a key or value is longer; the search for near names is quadratic in the length.
constexpr std::size_t kMaxWord = 64;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

Mistakes::Mistakes(const std::filesystem::path& file, std::span<const std::string> overrides)
    : files_{file}, overrides_(overrides.begin(), overrides.end()) {}

int Mistakes::add_file(const std::filesystem::path& file) {
  files_.push_back(file);
  return 1 - static_cast<int>(files_.size());
}

std::optional<std::filesystem::path> Mistakes::folder_of(int origin) const {
  if (origin > 0) return std::nullopt;
  return files_.at(static_cast<std::size_t>(-origin)).parent_path();
}

std::string Mistakes::name_of(int origin) const {
  const std::string name = abbreviate(files_.at(static_cast<std::size_t>(-origin)).string(), 4096);
  return name.empty() ? "recipe" : name;
}

void Mistakes::add(Where where, std::string_view key, const std::string& text) {
  const std::string prefix = key.empty() ? "" : abbreviate(key, 120) + ": ";
  mistakes_.push_back({where, prefix + text});
}

std::string Mistakes::place(Where where) const {
  if (where.origin <= 0) {
    return name_of(where.origin) + ":" + std::to_string(where.line) + ":" +
           std::to_string(where.column);
  }
  return "--set " + abbreviate(overrides_.at(static_cast<std::size_t>(where.origin) - 1), 120);
}

bool Mistakes::is_before(Where a, Where b) const {
  const auto place = [&](Where where) {
    const int files = static_cast<int>(files_.size());
    const int rank = where.origin <= 0 ? -where.origin : files + where.origin;
    return std::tuple(rank, where.line, where.column);
  };
  return place(a) < place(b);
}

void Mistakes::throw_if_any() const {
  if (mistakes_.empty()) return;
  std::vector<Mistake> sorted = mistakes_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Mistake& a, const Mistake& b) { return is_before(a.where, b.where); });
  std::vector<std::string> lines;
  if (sorted.size() > 1) {
    const bool in_others = std::any_of(sorted.begin(), sorted.end(),
                                       [](const Mistake& each) { return each.where.origin < 0; });
    lines.push_back(std::to_string(sorted.size()) + " mistakes in " + name_of(0) +
                    (in_others ? " and recipes that it extends:" : ":"));
  }
  for (const Mistake& mistake : sorted) {
    if (lines.size() > kMaxReported) {
      lines.push_back("and " + std::to_string(sorted.size() - kMaxReported) + " more");
      break;
    }
    lines.push_back(place(mistake.where) + ": " + mistake.text);
  }
  throw UserError(join(lines, "\n"));
}

std::string abbreviate(std::string_view text, std::size_t limit) {
  std::size_t end = std::min(text.size(), limit);
  if (end < text.size()) {
    while (end > 0 && continues_character(text[end])) --end;
  }
  std::string shown(text.substr(0, end));
  const bool readable = is_utf8(shown);
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (byte > 0x7F && !readable)) c = '?';
  }
  return end < text.size() ? shown + ".." : shown;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kMaxWord) return "";
  const auto nearest = nearest_name(word, candidates);
  return nearest ? "; did you mean '" + *nearest + "'?" : "";
}

}  // namespace decent::config
