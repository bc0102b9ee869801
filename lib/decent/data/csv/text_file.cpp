#include "decent/data/csv/text_file.h"

#include <algorithm>
#include <span>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/gzip.h"
#include "decent/data/other_kinds.h"
#include "decent/data/shards.h"

namespace decent::csv {
namespace {

// Memory is allocated only as data is inflated, and only for as much as text can inflate to: gzip
// shrinks tables of numbers and words to a third or a tenth, one-hot columns to a hundredth.
std::string inflated(std::span<const std::byte> bytes, const std::string& name) {
  constexpr std::size_t kMostRatio = 300;
  constexpr std::size_t kAlways = std::size_t{1} << 20;
  const std::size_t most = std::max(kAlways, bytes.size() * kMostRatio);
  GzipReader reader(bytes, "'" + name + "'");
  std::vector<char> piece(std::size_t{1} << 18);
  std::string text;
  while (const std::size_t count = reader.read(std::as_writable_bytes(std::span(piece)))) {
    text.append(piece.data(), count);
    if (text.size() > most) {
      throw UserError("'" + name + "': it inflates to more than " + std::to_string(kMostRatio) +
                      " times its size, as text does not; where it is right, decompress it first "
                      "(gunzip)");
    }
  }
  return text;
}

// Whether the first line ends with CR alone, as old programs of the Macintosh wrote them. Looks at
// kMostLine bytes only, because a sparse file may have 30 GB of zeros that take no space on the
// disk.
bool ends_lines_with_cr(std::string_view text) {
  text = text.substr(0, kMostLine);
  const std::size_t end = text.find_first_of("\r\n");
  return end < text.size() - 1 && text[end] == '\r' && text[end + 1] != '\n';
}

}  // namespace

TextFile::TextFile(const std::filesystem::path& path) : name_(path.string()), mapped_(path) {
  if (is_gzip(mapped_->bytes())) {
    inflated_ = inflated(mapped_->bytes(), name_);
    mapped_.reset();
  }
  refuse_other_kinds(std::as_bytes(std::span(text())), name_, FileKind::text);
  find_begin();
}

TextFile::TextFile(std::string content, std::string name)
    : name_(std::move(name)), inflated_(std::move(content)) {
  const auto bytes = std::as_bytes(std::span(inflated_));
  if (is_gzip(bytes)) inflated_ = inflated(bytes, name_);
  find_begin();
}

void TextFile::find_begin() {
  if (text().starts_with("\xEF\xBB\xBF")) begin_ = 3;
  if (text().starts_with("\xFF\xFE") || text().starts_with("\xFE\xFF")) {
    throw UserError("'" + name_ + "' is UTF-16; expected UTF-8 (iconv -f UTF-16 -t UTF-8)");
  }
  if (!text().empty() && ends_lines_with_cr(text())) end_lines_with_lf();
}

void TextFile::end_lines_with_lf() {
  if (text().size() > kMostText) {
    throw UserError("'" + name_ +
                    "' ends lines with CR, and such a file is read up to 1 GiB; end them with LF "
                    "(tr '\\r' '\\n')");
  }
  std::string lines(text());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool alone = i + 1 == lines.size() || lines[i + 1] != '\n';
    if (lines[i] == '\r' && alone) lines[i] = '\n';
  }
  inflated_ = std::move(lines);
  mapped_.reset();
  begin_ = 0;
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
