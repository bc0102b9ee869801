#include "decent/model/weights/formats.h"

#include <array>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/safetensors.h"
#include "decent/model/weights/script_module.h"
#include "decent/model/weights/state_dict.h"

namespace decent {
namespace {

StoredTensors read_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  StoredTensors tensors;
  for (const TensorView& view : parse_safetensors(bytes, name).tensors) {
    StoredTensor tensor{.dtype = view.dtype, .shape = view.shape, .strides = {}, .data = view.data};
    tensor.strides.resize(view.shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = view.shape.size(); i-- > 0; stride *= view.shape[i]) {
      tensor.strides[i] = stride;
    }
    tensors[view.name] = std::move(tensor);
  }
  return tensors;
}

struct Format {
  std::string_view extension;
  StoredTensors (*read)(std::span<const std::byte> bytes, const std::string& name);
};

constexpr std::array kFormats = std::to_array<Format>({
    {".safetensors", read_safetensors},
    {".pt", read_torch_weights},
    {".pth", read_torch_weights},
    {".bin", read_torch_weights},
});

const Format& format_of(const std::filesystem::path& path) {
  std::string valid;
  for (const Format& format : kFormats) {
    if (path.extension() == format.extension) return format;
    valid += (valid.empty() ? "" : ", ") + std::string(format.extension);
  }
  throw UserError("'" + path.string() + "' is of no format that can be read; valid: " + valid);
}

}  // namespace

StoredTensors read_torch_weights(std::span<const std::byte> bytes, const std::string& name) {
  const TorchFile file = read_torch_file(bytes, "'" + name + "'");
  return holds_script_module(file) ? read_script_module(file) : read_state_dict(file);
}

WeightsFile read_weights(const std::filesystem::path& path) {
  const Format& format = format_of(path);
  WeightsFile weights{.file = MappedFile(path), .tensors = {}};
  weights.tensors = format.read(weights.file.bytes(), path.string());
  return weights;
}

}  // namespace decent
