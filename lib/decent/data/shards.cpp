#include "decent/data/shards.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/options.h"
#include "decent/core/text.h"

namespace decent {
namespace {

std::vector<std::string> described(const Source& source) {
  std::vector<std::string> fields;
  for (const Field& field : source.fields()) {
    fields.push_back(field.name + " " + std::string(name_of(field.dtype)) +
                     shape_text(field.shape));
  }
  return fields;
}

class ShardedSource final : public SourceOfRows {
 public:
  ShardedSource(std::vector<std::unique_ptr<Source>> shards, std::vector<std::string> names)
      : shards_(std::move(shards)), names_(std::move(names)) {
    for (const auto& shard : shards_) ends_.push_back((size_ += shard->size()));
  }

  const std::vector<Field>& fields() const override { return shards_.front()->fields(); }
  std::int64_t size() const override { return size_; }
  bool decodes() const override { return shards_.front()->decodes(); }
  std::vector<std::string> classes() const override { return shards_.front()->classes(); }
  Options learned() const override { return shards_.front()->learned(); }
  std::vector<std::string> notes() const override { return shards_.front()->notes(); }
  std::int64_t length_of(std::int64_t index) const override {
    const std::size_t shard = shard_of(index);
    return shards_[shard]->length_of(index - begin_of(shard));
  }
  SampleOrigin origin_of(std::int64_t index) const override {
    const std::size_t shard = shard_of(index);
    return {.file = names_[shard], .row = index - begin_of(shard)};
  }

  // Samples that follow one another and are of one shard are read at once.
  void read_fields(std::span<const std::int64_t> indices,
                   std::span<std::byte* const> outs) const override {
    std::vector<std::byte*> at(outs.begin(), outs.end());
    std::vector<std::int64_t> inside;
    for (std::size_t i = 0; i < indices.size(); i += inside.size()) {
      const std::size_t shard = shard_of(indices[i]);
      inside.clear();
      for (const std::int64_t index : indices.subspan(i)) {
        if (index < begin_of(shard) || index >= ends_[shard]) break;
        inside.push_back(index - begin_of(shard));
      }
      shards_[shard]->read_fields(inside, at);
      for (std::size_t field = 0; field < at.size(); ++field) {
        if (at[field] != nullptr) at[field] += inside.size() * fields()[field].sample_bytes();
      }
    }
  }
  void read_one(std::span<const std::size_t> fields, std::int64_t index,
                std::span<HostArray> sample) const override {
    const std::size_t shard = shard_of(index);
    shards_[shard]->read_one(fields, index - begin_of(shard), sample);
  }

 private:
  std::size_t shard_of(std::int64_t index) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
    return static_cast<std::size_t>(end - ends_.begin());
  }
  std::int64_t begin_of(std::size_t shard) const { return shard == 0 ? 0 : ends_[shard - 1]; }

  std::vector<std::unique_ptr<Source>> shards_;
  std::vector<std::string> names_;  // of the shards' files
  std::vector<std::int64_t> ends_;  // the number of the first sample after each shard
  std::int64_t size_ = 0;
};

std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

// The pattern for glob(). Folders that exist under exactly that name, such as the recipe's, are not
// patterns.
std::string pattern_of(const std::filesystem::path& path) {
  std::filesystem::path pattern;
  std::filesystem::path there;
  for (const std::filesystem::path& part : path) {
    there /= part;
    std::error_code failed;
    pattern /= std::filesystem::exists(there, failed) ? escaped(part.string()) : part.string();
  }
  return pattern.string();
}

void check_number_of_files(std::int64_t count, const std::string& path) {
  constexpr std::int64_t kMostFiles = 1'000'000;
  if (count >= kMostFiles)
    throw UserError("'" + path + "': its braces are more than a million files");
}

// The numbers of a range such as 000..099, in either direction; nothing if it is none.
std::vector<std::string> range_in_braces(std::string_view text, const std::string& path) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos) return {};
  const std::array ends = {text.substr(0, dots), text.substr(dots + 2)};
  std::array<std::int64_t, 2> numbers{};
  std::size_t digits = 0;  // that each number has at least
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].empty() || ends[i].find_first_not_of("0123456789") != text.npos) return {};
    const char* end = ends[i].data() + ends[i].size();
    if (std::from_chars(ends[i].data(), end, numbers[i]).ec != std::errc()) return {};
    if (ends[i].size() > 1 && ends[i].front() == '0')
      digits = std::max(ends[0].size(), ends[1].size());
  }
  check_number_of_files(std::abs(numbers[1] - numbers[0]), path);
  std::vector<std::string> words;
  const std::int64_t step = numbers[0] <= numbers[1] ? 1 : -1;
  for (std::int64_t number = numbers[0]; number != numbers[1] + step; number += step) {
    const std::string word = std::to_string(number);
    words.push_back(std::string(digits - std::min(digits, word.size()), '0') + word);
  }
  return words;
}

std::vector<std::string> words_in_braces(std::string_view text, const std::string& path) {
  std::vector<std::string> words = range_in_braces(text, path);
  if (!words.empty() || text.find(',') == text.npos) return words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Adds the paths that `text` is short for, a part of whose braces in `path` is expanded already.
// Braces that are neither a range nor a list stand for themselves, as in a shell; braces in braces
// are not looked into.
void expand_braces(const std::string& text, std::size_t from, const std::string& path,
                   Paths& paths) {
  for (std::size_t open = text.find('{', from); open != text.npos;
       open = text.find('{', open + 1)) {
    const std::size_t close = text.find_first_of("{}", open + 1);
    if (close == text.npos || text[close] == '{') continue;
    const std::string_view inside = std::string_view(text).substr(open + 1, close - open - 1);
    const std::vector<std::string> words = words_in_braces(inside, path);
    for (const std::string& word : words) {
      const std::string before = text.substr(0, open) + word;
      expand_braces(before + text.substr(close + 1), before.size(), path, paths);
    }
    if (!words.empty()) return;
  }
  check_number_of_files(std::ssize(paths), path);
  paths.emplace_back(text);
}

// Folders that exist under exactly their names have no braces to expand, nor has a file.
Paths without_braces(std::span<const std::filesystem::path> paths) {
  Paths expanded;
  for (const std::filesystem::path& path : paths) {
    std::filesystem::path there;
    std::error_code failed;
    auto part = path.begin();
    while (part != path.end() && std::filesystem::exists(there / *part, failed)) there /= *part++;
    const std::size_t from = there.string().size();
    while (part != path.end()) there /= *part++;
    expand_braces(there.string(), from, there.string(), expanded);
  }
  return expanded;
}

}  // namespace

std::vector<std::filesystem::path> expand_globs(std::span<const std::filesystem::path> paths) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : without_braces(paths)) {
    // A file's own name may contain these characters.
    if (path.string().find_first_of("*?[") == std::string::npos || std::filesystem::exists(path)) {
      files.push_back(path);
      continue;
    }
    glob_t found{};
    if (::glob(pattern_of(path).c_str(), 0, nullptr, &found) == 0) {
      files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    const bool any = found.gl_pathc > 0;
    ::globfree(&found);
    if (!any) throw UserError("'" + path.string() + "' matches no file");
  }
  return files;
}

std::unique_ptr<Source> open_shards(
    std::span<const std::filesystem::path> files,
    const std::function<std::unique_ptr<Source>(const std::filesystem::path&)>& open) {
  constexpr std::size_t kShown = 20;
  if (files.empty()) throw UserError("path: expected at least one file");
  std::vector<std::unique_ptr<Source>> shards;
  std::vector<std::string> names;
  for (const std::filesystem::path& file : files) {
    names.push_back(file.string());
    shards.push_back(open(file));
    const std::vector<std::string> own = described(*shards.back());
    const std::vector<std::string> first = described(*shards.front());
    if (own != first) {
      throw UserError("'" + file.string() + "' has the fields " + some_of(own, kShown) + ", '" +
                      files.front().string() + "' has " + some_of(first, kShown));
    }
  }
  return concatenated(std::move(shards), std::move(names));
}

std::unique_ptr<Source> concatenated(std::vector<std::unique_ptr<Source>> sources,
                                     std::vector<std::string> names) {
  if (sources.size() == 1) return std::move(sources.front());
  return std::make_unique<ShardedSource>(std::move(sources), std::move(names));
}

}  // namespace decent
