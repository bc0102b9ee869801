#include "decent/model/tensor_file.h"

#include <string_view>
#include <vector>

#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/core/torch_dtype.h"

namespace decent {

void save_tensors(const Model::NamedTensors& tensors, const std::filesystem::path& path,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> contiguous;  // keeps the data alive
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    contiguous.push_back(tensor.detach().to(at::kCPU).contiguous());
    views.push_back({.name = name,
                     .dtype = dtype_of(tensor.scalar_type()),
                     .shape = tensor.sizes().vec(),
                     .data = {static_cast<const std::byte*>(contiguous.back().const_data_ptr()),
                              tensor.nbytes()}});
  }
  const std::string header = safetensors_header(views, metadata);
  std::vector<std::string_view> pieces = {header};
  for (const TensorView& view : views) {
    pieces.emplace_back(reinterpret_cast<const char*>(view.data.data()), view.data.size());
  }
  write_file(path, pieces);
}

}  // namespace decent
