// Any bytes are a valid model or a UserError, nothing else; and what is valid is written back as
// something that is valid.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "decent/core/error.h"
#include "decent/model/onnx/inference_form.h"
#include "decent/model/onnx/read.h"
#include "decent/model/onnx/splice.h"

namespace {

namespace onnx = decent::onnx;

// An empty folder for the model, where external data is looked for. Removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "fuzz_onnx.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path model() const { return path_ / "input.onnx"; }

 private:
  std::filesystem::path path_;
};

std::optional<onnx::Model> read(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    return onnx::read_model(path);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::filesystem::path path = folder.model();
  const auto model = read(path, {reinterpret_cast<const char*>(data), size});
  if (!model) return 0;
  const std::optional<std::string> bytes = in_inference_form(*model);
  if (!bytes) return 0;
  // Its form for inference is its own.
  const std::filesystem::path written = path.parent_path() / "written.onnx";
  const auto again = read(written, *bytes);
  if (!again || in_inference_form(*again) != bytes) __builtin_trap();
  return 0;
}
