#pragma once
// Safetensors files of the programs here, which the Python tests write and read.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/core/torch_dtype.h"

namespace decent::parity {

using Named = std::map<std::string, at::Tensor>;

inline Named read_tensors(const std::filesystem::path& path) {
  const MappedFile file(path);
  Named result;
  for (const TensorView& view : parse_safetensors(file.bytes(), path.string()).tensors) {
    const at::Tensor tensor = at::empty(view.shape, scalar_type(view.dtype));
    std::memcpy(tensor.data_ptr(), view.data.data(), view.data.size());
    result.emplace(view.name, tensor);
  }
  return result;
}

inline void write_tensors(const std::filesystem::path& path, const Named& tensors) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const auto* begin = static_cast<const std::byte*>(tensor.const_data_ptr());
    views.push_back(
        {name, dtype_of(tensor.scalar_type()), tensor.sizes().vec(), {begin, tensor.nbytes()}});
  }
  const std::string header = safetensors_header(views);
  std::vector<std::string_view> pieces = {header};
  for (const TensorView& view : views)
    pieces.emplace_back(reinterpret_cast<const char*>(view.data.data()), view.data.size());
  write_file(path, pieces);
}

}  // namespace decent::parity
