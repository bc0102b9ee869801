#include "decent/data/shards.h"

#include <glob.h>

#include <algorithm>
#include <string>
#include <utility>

#include "decent/core/error.h"
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

}  // namespace

std::vector<std::filesystem::path> expand_globs(std::span<const std::filesystem::path> paths) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : paths) {
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
