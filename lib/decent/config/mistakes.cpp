#include "decent/config/mistakes.h"

#include <algorithm>

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
    : file_(abbreviate(file.string(), 4096)), overrides_(overrides.begin(), overrides.end()) {
  if (file_.empty()) file_ = "recipe";
}

void Mistakes::add(Where where, std::string_view key, const std::string& text) {
  const std::string prefix = key.empty() ? "" : abbreviate(key, 120) + ": ";
  mistakes_.push_back({where, prefix + text});
}

std::string Mistakes::place(Where where) const {
  if (where.origin == 0) {
    return file_ + ":" + std::to_string(where.line) + ":" + std::to_string(where.column);
  }
  return "--set " + abbreviate(overrides_.at(static_cast<std::size_t>(where.origin) - 1), 120);
}

void Mistakes::throw_if_any() const {
  if (mistakes_.empty()) return;
  std::vector<Mistake> sorted = mistakes_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Mistake& a, const Mistake& b) { return a.where < b.where; });
  std::vector<std::string> lines;
  if (sorted.size() > 1) {
    lines.push_back(std::to_string(sorted.size()) + " mistakes in " + file_ + ":");
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
