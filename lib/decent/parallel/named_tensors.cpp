#include "decent/parallel/named_tensors.h"

#include <ATen/core/grad_mode.h>

#include <map>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"

namespace decent {
namespace {

NamedTensors select(const NamedTensors& tensors, bool trained) {
  NamedTensors result;
  for (const auto& entry : tensors) {
    if (entry.second.requires_grad() == trained) result.push_back(entry);
  }
  return result;
}

}  // namespace

NamedTensors trained_part(const NamedTensors& parameters) { return select(parameters, true); }
NamedTensors untrained_part(const NamedTensors& parameters) { return select(parameters, false); }

std::int64_t bytes_of(const NamedTensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

void settle_buffers(const NamedTensors& held, const NamedTensors& now) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> current(now.begin(), now.end());
  // All values are taken before any is written: a buffer's new tensor may be another buffer.
  std::vector<std::pair<at::Tensor, at::Tensor>> moved;
  std::vector<at::Tensor> values;
  for (const auto& [name, buffer] : held) {
    const auto found = current.find(name);
    if (found == current.end() || found->second.data_ptr() == buffer.data_ptr()) continue;
    const at::Tensor& other = found->second;
    if (other.sizes() != buffer.sizes() || other.scalar_type() != buffer.scalar_type()) {
      throw UserError("forward changes the shape or type of the buffer '" + name + "' from " +
                      dtype_text(buffer.scalar_type()) + shape_text(buffer.sizes()) +
                      ", so that workers cannot average it");
    }
    moved.emplace_back(buffer, other);
    values.push_back(other.clone());
  }
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i].first.copy_(values[i]);
    moved[i].second.set_data(moved[i].first);
  }
}

}  // namespace decent
