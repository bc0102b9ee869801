#pragma once
// A text file, plain or compressed by gzip, whose pieces can be read in any order. No torch.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/file.h"

namespace decent::csv {

/// Plain files are mapped and take no memory. Compressed files are inflated into memory. Files
/// whose lines end with CR alone are read into memory too, where CR becomes LF.
class TextFile {
 public:
  /// Throws UserError for a file that cannot be read, for damaged compression, for a file that
  /// inflates to more than text can, for UTF-16, and for more than kMostText bytes with lines that
  /// end with CR.
  explicit TextFile(const std::filesystem::path& path);
  /// The same from the content of a file.
  TextFile(std::string content, std::string name);

  /// All of it, without a byte order mark. If the file is truncated meanwhile, reading the missing
  /// part ends the process (SIGBUS).
  std::string_view text() const;
  /// text().substr(begin, size), which may be copied to `buffer`. Throws UserError if the file was
  /// truncated.
  std::string_view piece(std::size_t begin, std::size_t size, std::string& buffer) const;

  const std::string& name() const { return name_; }

 private:
  void find_begin();
  void end_lines_with_lf();

  std::string name_;
  std::optional<MappedFile> mapped_;
  std::string inflated_;   // if it is not mapped
  std::size_t begin_ = 0;  // after the byte order mark
};

using TextFiles = std::vector<std::shared_ptr<const TextFile>>;

/// Files and wildcards (expand_globs). Throws UserError.
TextFiles open_text_files(const std::vector<std::filesystem::path>& paths);

}  // namespace decent::csv
