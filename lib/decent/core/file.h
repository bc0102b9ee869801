#pragma once
// Files: memory-mapped reading, and writing that is whole or absent.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace decent {

/// A whole file mapped read-only into memory. Movable; unmaps when destroyed.
class MappedFile {
 public:
  /// Throws UserError if the file is missing, is not a regular file or cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  /// Maps a file that is open for reading, even if it was renamed or removed; `path` is its name in
  /// errors. The caller keeps `fd`. Throws UserError as above.
  MappedFile(int fd, const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// If the file is truncated meanwhile, reading the missing part ends the process (SIGBUS).
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Copies the bytes from `offset` on, which must lie in bytes(), to `out`. Throws UserError if
  /// the file was truncated and has lost them. Any thread.
  void copy(std::size_t offset, std::span<std::byte> out) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  void map(int fd);

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The limits in bytes of a text that is read into memory and of one of its lines. Anything longer
/// is damage, or a sparse file, which takes no space on the disk.
inline constexpr std::size_t kMostText = std::size_t{1} << 30;
inline constexpr std::size_t kMostLine = std::size_t{16} << 20;

/// The content of a text file. Throws UserError as MappedFile does, and if the file is longer than
/// kMostText.
std::string read_text(const std::filesystem::path& path);

/// Calls `act` with each line of a text file, without its line feed; `ended` says whether there was
/// one. Holds about one line in memory. Throws UserError as MappedFile does, and if a line is
/// longer than kMostLine.
void for_each_line(const std::filesystem::path& path,
                   const std::function<void(std::string_view line, bool ended)>& act);

/// A file that is written piece by piece and appears under its name whole or not at all: it is
/// written to a temporary file beside it, followed by fsync, rename and fsync of the folder.
///
/// The temporary file has a new name ("model.pt.3f09a1c2.tmp"), so that neither another file nor
/// the target of a symbolic link can be overwritten. A process that is killed leaves it behind;
/// is_temporary_of() recognises it.
class AtomicFile {
 public:
  /// Throws WriteError.
  explicit AtomicFile(std::filesystem::path path);
  /// Removes the temporary file if commit() was not reached.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. Never throws, for callers that cannot handle it: commit() throws the first failure,
  /// and nothing more is written after it.
  void write(std::string_view bytes) noexcept;
  /// Throws WriteError if a write has failed, for callers with much left to write.
  void check() const;
  /// Makes the file appear. Throws WriteError naming it if any of this failed.
  void commit();

  // The steps of commit(), for callers who make several files appear together, in order. Those who
  // call sync_tree() need no sync(). All throw WriteError.

  /// Makes the content durable and closes the file, still under its temporary name.
  void sync();
  /// Renames it to its final name, replacing an existing file. The caller syncs the folder.
  void rename();
  /// The same, but fails if there is a file of that name.
  void rename_as_new();

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  int error_ = 0;  // errno of the first failed write
};

/// Whether `name` is one that AtomicFile gives its temporary file while it writes `final_name`.
bool is_temporary_of(std::string_view name, std::string_view final_name);

/// Throws WriteError if `path` is a pipe, because opening it would wait for another program.
void check_is_no_pipe(const std::filesystem::path& path);

/// Whether the file that is open as `fd` is still the one at `path`, neither removed nor replaced.
bool stands_at(int fd, const std::filesystem::path& path);

/// Writes a file in one go, as AtomicFile does. Throws WriteError.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces);
void write_file(const std::filesystem::path& path, std::string_view content);

/// The folder that contains a file; "." for a name without a folder.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// Creates the folder and its parents. Throws WriteError.
void create_folders(const std::filesystem::path& path);

/// Makes the folder's list of names durable (fsync). Throws WriteError.
void sync_folder(const std::filesystem::path& path);

/// Makes all files and folders in it durable, and whatever else was written to its file system
/// (syncfs): for many small files, which would wait for the disk one after another. Throws
/// WriteError.
void sync_tree(const std::filesystem::path& path);

/// Renames a file or folder within one file system, and makes it durable. An empty folder or a file
/// of the new name is replaced. Throws WriteError.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace decent
