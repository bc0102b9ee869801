// Any bytes are a valid model or a UserError, nothing else; what is valid is translated or refused
// with a UserError, and is written back as something that is valid.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/error.h"
#include "decent/onnx/classify/classify.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/format/splice.h"
#include "decent/onnx/graph/inline_functions.h"
#include "decent/onnx/patterns/patterns.h"
#include "decent/onnx/translate/translation.h"
#include "decent/onnx/write/inference_form.h"

namespace {

namespace onnx = decent::onnx;

// An empty folder, where external data is looked for. Removed at the end.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "fuzz_onnx.XXXXXX") {
    std::string name = path_;
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A file in memory, as the file system is too slow.
std::shared_ptr<const decent::MappedFile> file_of(std::string_view bytes) {
  static const Folder folder;
  const int fd = ::memfd_create("input", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("no memory for the input");
  }
  auto file = std::make_shared<const decent::MappedFile>(fd, folder.path() / "input.onnx");
  ::close(fd);
  return file;
}

std::optional<onnx::Model> read(std::string_view bytes) {
  try {
    return onnx::read_model(file_of(bytes));
  } catch (const decent::UserError&) {
    return std::nullopt;
  }
}

std::optional<std::string> in_inference_form(const onnx::Model& model) {
  onnx::Input file(model.files.front()->bytes(), model.path);
  std::vector<onnx::Edit> edits;
  try {
    edits = onnx::inference_form(file, model);
  } catch (const decent::UserError&) {
    return std::nullopt;  // it has none
  }
  const onnx::Spliced spliced = onnx::splice(file, edits);
  std::string bytes;
  for (const std::span<const std::byte> piece : spliced.pieces) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return bytes;
}

// All of the import that needs no LibTorch.
void import(const onnx::Model& file) {
  try {
    onnx::Model model = onnx::inline_functions(file);
    onnx::recognise_patterns(model.graph, model.opset());
    const onnx::Classification classification = onnx::classify(model.graph, {});
    onnx::translate(model, classification, {});
  } catch (const decent::UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = read({reinterpret_cast<const char*>(data), size});
  if (!model) return 0;
  import(*model);
  const std::optional<std::string> bytes = in_inference_form(*model);
  if (!bytes) return 0;
  // Its form for inference is its own.
  const auto again = read(*bytes);
  if (!again || in_inference_form(*again) != bytes) __builtin_trap();
  return 0;
}
