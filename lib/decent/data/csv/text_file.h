#pragma once
// A file of text, plain or compressed by gzip, of which pieces are read at random. No torch.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/file.h"

namespace decent::csv {

/// Plain files are mapped: they take no memory. Compressed ones are inflated into memory, and so
/// are read those whose lines end with CR alone, which become LF.
class TextFile {
 public:
  /// Throws UserError for a file that cannot be read, damaged compression, one that inflates to
  /// more than text does, UTF-16, and more than kMostText of lines that end with CR.
  explicit TextFile(const std::filesystem::path& path);
  /// The same of the content of a file.
  TextFile(std::string content, std::string name);

  /// All of it, without a byte order mark. If the file is truncated meanwhile, reading the missing
  /// part ends the process (SIGBUS).
  std::string_view text() const;
  /// text().substr(begin, size), perhaps in `buffer`. Throws UserError if the file was truncated.
  std::string_view piece(std::size_t begin, std::size_t size, std::string& buffer) const;

  const std::string& name() const { return name_; }

 private:
  void find_begin();
  void end_lines_with_lf();

  std::string name_;
  std::optional<MappedFile> mapped_;
  std::string inflated_;   // where it is not mapped
  std::size_t begin_ = 0;  // after the byte order mark
};

using TextFiles = std::vector<std::shared_ptr<const TextFile>>;

/// Files and wildcards (expand_globs). Throws UserError.
TextFiles open_text_files(const std::vector<std::filesystem::path>& paths);

}  // namespace decent::csv
