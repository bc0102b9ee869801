#include "decent/resume/replica_image.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>

#include "decent/checkpoint/checksum.h"
#include "decent/core/file.h"
#include "decent/core/torch_dtype.h"

namespace decent {
namespace {

// The file is written and its checksum computed in pieces that stay in the cache between the two.
constexpr std::size_t kBytesAtATime = std::size_t{1} << 20;

// The exponent of NaN and infinities is all ones. This looks at bits because it runs beside
// training, in a thread that must not start PyTorch's own threads.
template <typename Bits>
bool all_finite(std::span<const std::byte> data, Bits exponent) {
  Bits found = 0;
  for (std::size_t i = 0; i + sizeof(Bits) <= data.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, data.data() + i, sizeof bits);
    found |= static_cast<Bits>((bits & exponent) == exponent);
  }
  return found == 0;
}

bool all_finite(const TensorView& tensor) {
  if (tensor.dtype == DType::float64) {
    return all_finite<std::uint64_t>(tensor.data, 0x7ff0000000000000U);
  }
  return all_finite<std::uint32_t>(tensor.data, 0x7f800000U);  // the only other type that trains
}

// Widest elements first, as safetensors' own writer does, so that all tensors are aligned.
std::vector<std::size_t> order_in_file(const NamedTensors& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensors[a].second.element_size() > tensors[b].second.element_size();
  });
  return order;
}

// The GPU that holds tensors, if any.
std::optional<at::Device> gpu_of(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_cpu()) return tensor.device();
  }
  return std::nullopt;
}

}  // namespace

void ReplicaImage::lay_out(const NamedTensors& tensors) {
  const std::vector<std::size_t> order = order_in_file(tensors);
  std::vector<TensorView> views;
  std::size_t data_bytes = 0;
  for (std::size_t i : order) {
    const at::Tensor& tensor = tensors[i].second;
    views.push_back({.name = tensors[i].first,
                     .dtype = dtype_of(tensor.scalar_type()),
                     .shape = tensor.sizes().vec(),
                     .data = {static_cast<const std::byte*>(nullptr), tensor.nbytes()}});
    data_bytes += tensor.nbytes();
  }
  const std::string header = safetensors_header(views);
  const bool pinned = gpu_of(tensors).has_value();
  memory_ = at::empty({static_cast<std::int64_t>(header.size() + data_bytes)},
                      at::TensorOptions(at::kByte).pinned_memory(pinned));
  auto* const begin = static_cast<char*>(memory_.mutable_data_ptr());
  std::memcpy(begin, header.data(), header.size());

  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) names.insert(name);
  places_.resize(tensors.size());
  char* data = begin + header.size();
  for (std::size_t v = 0; v < views.size(); ++v) {
    TensorView& view = views[v];
    const std::size_t bytes = view.data.size();
    view.data = {reinterpret_cast<const std::byte*>(data), bytes};
    places_[order[v]] = {view.name, data, bytes};
    data += bytes;
    if (!view.name.starts_with(kModelPrefix)) continue;
    const std::string parameter = view.name.substr(kModelPrefix.size());
    if (names.count(update_count_name(parameter)) > 0) trained_.push_back(view);
  }
}

void ReplicaImage::copy(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  if (!memory_.defined()) lay_out(tensors);
  if (tensors.size() != places_.size()) throw std::logic_error("another set of tensors to save");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    const Place& place = places_[i];
    if (name != place.name || tensor.nbytes() != place.bytes) {
      throw std::logic_error("tensor " + name + " has changed since the last checkpoint");
    }
    if (tensor.is_cpu() && tensor.is_contiguous()) {
      if (place.bytes > 0) std::memcpy(place.data, tensor.const_data_ptr(), place.bytes);
    } else {
      // A tensor made from an address inside the pinned memory is unknown to LibTorch's allocator,
      // so that the memory can be given back after a GPU has failed.
      at::from_blob(place.data, tensor.sizes(), tensor.options().device(at::kCPU))
          .copy_(tensor, /*non_blocking=*/true);
    }
  }
  if (const auto gpu = gpu_of(tensors))
    c10::impl::VirtualGuardImpl(gpu->type()).getStream(*gpu).synchronize();
}

std::string_view ReplicaImage::bytes() const {
  return {static_cast<const char*>(memory_.const_data_ptr()), memory_.nbytes()};
}

std::optional<std::string> ReplicaImage::non_finite() const {
  for (const TensorView& parameter : trained_) {
    if (!all_finite(parameter)) return parameter.name.substr(kModelPrefix.size());
  }
  return std::nullopt;
}

CheckpointFile write_replica(const std::filesystem::path& folder, int rank,
                             std::string_view bytes) {
  CheckpointFile result{.name = replica_file_name(rank), .bytes = bytes.size(), .checksum = {}};
  AtomicFile file(folder / result.name);
  Checksum checksum;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kBytesAtATime);
    checksum.add(piece);
    file.write(piece);
    bytes.remove_prefix(piece.size());
  }
  result.checksum = checksum.hex();
  file.commit();
  return result;
}

}  // namespace decent
