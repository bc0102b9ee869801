#include "decent/onnx/format/external.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "decent/core/text.h"

namespace decent::onnx {
namespace {

constexpr std::uint64_t kClaimCost = 3 * sizeof(std::string) + 64;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::vector<std::string> components_of(const std::string& location) {
  std::vector<std::string> components;
  for (std::size_t begin = 0; begin <= location.size();) {
    const std::size_t end = std::min(location.find('/', begin), location.size());
    std::string component = location.substr(begin, end - begin);
    if (!component.empty() && component != ".") components.push_back(std::move(component));
    begin = end + 1;
  }
  return components;
}

// Opens a file below `folder`, one component after the other, so that none can be a symbolic link
// or become one meanwhile. Does not block if it is a pipe. Negative if it fails.
Descriptor open_below(const std::filesystem::path& folder, const std::string& location) {
  Descriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::vector<std::string> components = components_of(location);
  for (std::size_t i = 0; i < components.size() && at.get() >= 0; ++i) {
    const bool last = i + 1 == components.size();
    const int flags = last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
    at = Descriptor(::openat(at.get(), components[i].c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
  }
  return at;
}

// ENOTDIR: a folder that is a symbolic link, or a file.
std::string reason_of(int error) {
  if (error == ELOOP || error == ENOTDIR) {
    return "a part of its path is a symbolic link or not a folder; copy the file itself to the "
           "model's folder";
  }
  return std::strerror(error);
}

bool is_same_file(const std::filesystem::path& path, const struct stat& other) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && info.st_dev == other.st_dev &&
         info.st_ino == other.st_ino;
}

}  // namespace

std::string checked_location(const Input& input, const std::string& location,
                             const std::string& tensor) {
  const auto refuse = [&](const std::string& why) {
    input.fail(tensor + ": its external data in " + in_quotes(location) + " is refused: " + why);
  };
  if (location.starts_with('/')) refuse("the path must be relative to the model's folder");
  if (location.find('\0') != std::string::npos) refuse("this is not a file's name");
  std::string path;
  for (const std::string& component : components_of(location)) {
    if (component == "..") refuse("it must lie in the model's folder");
    path += (path.empty() ? "" : "/") + component;
  }
  if (path.empty() || location.ends_with('/')) refuse("this is not a file's name");
  return path;
}

ExternalData::ExternalData(Input& input, std::filesystem::path folder)
    : input_(&input), folder_(std::move(folder)) {
  if (folder_.empty()) folder_ = ".";
}

ExternalData::File& ExternalData::open(const std::string& location, const std::string& tensor) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  const std::string what = tensor + ": its external data in " + in_quotes(location) + " ";
  const Descriptor file = open_below(folder_, location);
  if (file.get() < 0) input_->fail(what + "cannot be read: " + reason_of(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) input_->fail(what + "cannot be read: " + reason_of(errno));
  if (!S_ISREG(info.st_mode)) input_->fail(what + "cannot be read: not a file");
  if (is_same_file(input_->path, info)) {
    input_->fail(what + "is refused: this is the model file itself");
  }
  if (info.st_nlink > 1) {
    input_->fail(what +
                 "is refused: the file has a second name (a hard link), which may lie outside the "
                 "model's folder; use a copy of the file");
  }
  input_->charge(sizeof(File) + sizeof(MappedFile) + 2 * location.size() + kClaimCost);
  File& opened = files_[location];
  opened.mapped = std::make_shared<const MappedFile>(file.get(), folder_ / location);
  return opened;
}

std::span<const std::byte> ExternalData::claim(const ExternalPlace& place, std::uint64_t size,
                                               const std::string& tensor) {
  File& file = open(place.location, tensor);
  const std::span<const std::byte> bytes = file.mapped->bytes();
  const std::string where = tensor + ": its external data, from byte " +
                            std::to_string(place.offset) + " of " + in_quotes(place.location) +
                            " (" + std::to_string(bytes.size()) + " bytes), ";
  if (place.offset > bytes.size()) input_->fail(where + "begins behind the file's end");
  const std::uint64_t rest = bytes.size() - place.offset;
  const std::uint64_t length = place.length.value_or(rest);
  if (length > rest) {
    input_->fail(where + "should have " + std::to_string(length) + " bytes: the file is cut short");
  }
  if (length != size) {
    input_->fail(where + "has " + std::to_string(length) + " bytes, its type and dims take " +
                 std::to_string(size));
  }
  input_->charge(kClaimCost + tensor.size());
  file.claims.push_back({place.offset, place.offset + length, tensor});
  return bytes.subspan(place.offset, length);
}

void ExternalData::check_overlaps() {
  for (auto& [location, file] : files_) {
    std::erase_if(file.claims, [](const Claim& claim) { return claim.begin == claim.end; });
    std::sort(file.claims.begin(), file.claims.end(), [](const Claim& a, const Claim& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    for (std::size_t i = 1; i < file.claims.size(); ++i) {
      const Claim& a = file.claims[i - 1];
      const Claim& b = file.claims[i];
      if (b.begin >= a.end || (a.begin == b.begin && a.end == b.end)) continue;
      input_->fail(b.tensor + ": its external data in " + in_quotes(location) + ", bytes " +
                   std::to_string(b.begin) + " to " + std::to_string(b.end) +
                   ", overlaps that of " + a.tensor + ", bytes " + std::to_string(a.begin) +
                   " to " + std::to_string(a.end));
    }
  }
}

std::vector<std::shared_ptr<const MappedFile>> ExternalData::files() const {
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (const auto& [location, file] : files_) files.push_back(file.mapped);
  return files;
}

}  // namespace decent::onnx
