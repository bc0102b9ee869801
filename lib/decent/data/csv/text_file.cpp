#include "decent/data/csv/text_file.h"

#include <utility>

#include "decent/core/error.h"
#include "decent/data/csv/gunzip.h"
#include "decent/data/shards.h"

namespace decent::csv {
namespace {

// Tables of numbers and words shrink to a third or a tenth, one-hot columns to a hundredth.
constexpr std::size_t kMostRatio = 300;

}  // namespace

TextFile::TextFile(const std::filesystem::path& path) : name_(path.string()), mapped_(path) {
  if (is_gzip(mapped_->bytes())) {
    inflated_ = gunzip(mapped_->bytes(), kMostRatio, "'" + name_ + "'");
    mapped_.reset();
  }
  find_begin();
}

TextFile::TextFile(std::string text, std::string name)
    : name_(std::move(name)), inflated_(std::move(text)) {
  find_begin();
}

void TextFile::find_begin() {
  if (text().starts_with("\xEF\xBB\xBF")) begin_ = 3;
  if (text().starts_with("\xFF\xFE") || text().starts_with("\xFE\xFF")) {
    throw UserError("'" + name_ + "' is UTF-16; expected UTF-8 (iconv -f UTF-16 -t UTF-8)");
  }
}

std::string_view TextFile::text() const {
  const std::string_view all =
      mapped_ ? std::string_view(reinterpret_cast<const char*>(mapped_->bytes().data()),
                                 mapped_->bytes().size())
              : std::string_view(inflated_);
  return all.substr(begin_);
}

std::string_view TextFile::piece(std::size_t begin, std::size_t size, std::string& buffer) const {
  if (!mapped_) return text().substr(begin, size);
  buffer.resize(size);
  mapped_->copy(begin_ + begin, std::as_writable_bytes(std::span(buffer)));
  return buffer;
}

TextFiles open_text_files(const std::vector<std::filesystem::path>& paths) {
  TextFiles files;
  for (const std::filesystem::path& path : expand_globs(paths))
    files.push_back(std::make_shared<const TextFile>(path));
  return files;
}

}  // namespace decent::csv
