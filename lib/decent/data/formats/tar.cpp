// libarchive reads the headers, and never the content.

#include "decent/data/formats/tar.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/other_kinds.h"

namespace decent {
namespace {

constexpr std::size_t kTarBlock = 512;

std::size_t rounded_to_blocks(std::size_t bytes) {
  return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

class TarReader {
 public:
  TarReader(std::span<const std::byte> bytes, const std::string& file)
      : bytes_(bytes), file_(file), reader_(::archive_read_new(), ::archive_read_free) {
    if (reader_ == nullptr) throw std::bad_alloc();
    ::archive_read_support_format_tar(reader_.get());
    if (::archive_read_open_memory(reader_.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
      fail("not a tar archive (" + reason() + "); a compressed one must be unpacked first");
  }

  /// Reads the next header; false at the end of the archive.
  bool next() {
    const int status = ::archive_read_next_header(reader_.get(), &entry_);
    if (status == ARCHIVE_EOF) return false;
    // A warning is about a name that the locale does not know: its bytes are taken as they are.
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
      fail("damaged " + after_last() + ": " + reason());
    end_ = position() + rounded_to_blocks(size());
    return true;
  }

  bool is_file() const { return ::archive_entry_filetype(entry_) == AE_IFREG || is_link(); }

  TarMember member() {
    const char* name = ::archive_entry_pathname(entry_);
    TarMember member{.name = name == nullptr ? "" : name, .offset = position(), .size = size()};
    last_ = member.name;
    if (is_link()) {
      fail("member " + in_quotes(last_) +
           " is a link; tar --dereference --hard-dereference packs what it leads to");
    }
    if (::archive_entry_sparse_count(entry_) > 0)
      fail("member " + in_quotes(last_) + " is a sparse file; pack it without --sparse");
    if (member.offset > bytes_.size() || member.size > bytes_.size() - member.offset) {
      fail("truncated: member " + in_quotes(last_) + " has " + std::to_string(member.size) +
           " bytes from byte " + std::to_string(member.offset) + " on, the file ends at byte " +
           std::to_string(bytes_.size()));
    }
    return member;
  }

  /// Behind the last header there are blocks of zeros, and nothing else.
  void check_end() const {
    // Writers fill the file up to a multiple of what they write at once.
    constexpr std::size_t kMostPadding = std::size_t{1} << 20;
    if (position() <= end_) {
      fail("truncated: it ends " + after_last() +
           ", without the blocks of zeros that close an archive");
    }
    const auto rest = bytes_.subspan(std::min(position(), bytes_.size()));
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (rest.size() <= kMostPadding && std::all_of(rest.begin(), rest.end(), is_zero)) return;
    fail("there are " + std::to_string(rest.size()) + " bytes behind the end of the archive, " +
         after_last() +
         ": an unfinished download, or archives that cat has joined (tar --concatenate joins "
         "them)");
  }

 private:
  bool is_link() const {
    return ::archive_entry_filetype(entry_) == AE_IFLNK ||
           ::archive_entry_hardlink(entry_) != nullptr;
  }
  std::size_t size() const { return static_cast<std::size_t>(::archive_entry_size(entry_)); }
  std::size_t position() const {
    return static_cast<std::size_t>(::archive_filter_bytes(reader_.get(), 0));
  }
  std::string after_last() const {
    return last_.empty() ? "at its beginning" : "after member " + in_quotes(last_);
  }
  std::string reason() const {
    const char* text = ::archive_error_string(reader_.get());
    return text == nullptr ? "unknown error" : on_one_line(text);
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw UserError("'" + file_ + "': " + problem);
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::unique_ptr<archive, int (*)(archive*)> reader_;
  archive_entry* entry_ = nullptr;
  std::string last_;     // the name of the last member
  std::size_t end_ = 0;  // of the last content and what fills its last block
};

// The members `__name__` and those of a folder of such a name, which webdataset skips.
bool is_about_the_shard(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

}  // namespace

void for_each_tar_member(std::span<const std::byte> archive, const std::string& file,
                         const std::function<void(const TarMember&)>& act) {
  refuse_other_kinds(archive, file, FileKind::tar);
  TarReader reader(archive, file);
  while (reader.next()) {
    if (reader.is_file()) act(reader.member());
  }
  reader.check_end();
}

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return text;
}

// As webdataset's base_plus_ext.
std::optional<NameInSample> name_in_sample(std::string_view name) {
  if (is_about_the_shard(name)) return std::nullopt;
  const std::size_t begin = name.rfind('/') == name.npos ? 0 : name.rfind('/') + 1;
  const std::size_t dot = name.find('.', begin);
  if (dot == name.npos || dot == begin) return std::nullopt;
  return NameInSample{std::string(name.substr(0, dot)),
                      lower_case(std::string(name.substr(dot + 1)))};
}

}  // namespace decent
