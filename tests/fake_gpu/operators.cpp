// Operators on tensors of the fake device: the CPU's, on the same memory.
//
// It is a fallback for all operators without a kernel for CUDA, which here are all operators that
// are not composed of others. Operators that PyTorch composes in one way for the CPU and in another
// for CUDA (convolutions) are registered by name, since the parts of CUDA's way have no kernel for
// the CPU.
//
// Like a GPU it refuses tensors of the CPU together with its own, except single elements, and
// except for operators that take both. An index out of range is a failed assertion in a kernel.

#include "operators.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device.h"

namespace decent::fake_gpu {
namespace {

using torch::jit::Stack;

// Operators that take both kinds of tensors in one call.
const std::set<std::string> kForBoth = {
    "aten::copy_",      "aten::index.Tensor",     "aten::index.Tensor_out",
    "aten::index_put_", "aten::_index_put_impl_", "aten::_pack_padded_sequence"};

// One call of an operator: knows which tensor of the CPU stands for which tensor of the device.
class Call {
 public:
  explicit Call(const c10::OperatorHandle& op) : name_(c10::toString(op.operator_name())) {}

  c10::IValue to_host(const c10::IValue& value, const c10::Argument& argument) {
    if (value.isTensor()) return to_host(value.toTensor());
    if (value.isTensorList()) return to_host(value.toTensorList());
    if (value.isOptionalTensorList()) return to_host(value.toOptionalTensorList());
    if (value.isDevice()) return c10::Device(c10::kCPU);
    const bool takes_generator = argument.type()->str().starts_with("Generator");
    if (value.isGenerator() || (value.isNone() && takes_generator)) return generator();
    if (argument.name() == "pin_memory") return c10::IValue();
    return value;
  }

  // Copies back memory that an operator has enlarged, and shapes that it has changed.
  void write_back() {
    for (const auto& [host, device] : tensors_) {
      if (host.data_ptr() != device.data_ptr() && host.storage().nbytes() > 0) {
        c10::StorageImpl* const storage = device.storage().unsafeGetStorageImpl();
        storage->set_data_ptr_noswap(device_memory(host.storage()));
        storage->set_nbytes(host.storage().nbytes());
      }
      set_shape(device, host);
    }
  }

  c10::IValue to_device(const c10::IValue& value) {
    if (value.isTensor()) return to_device(value.toTensor());
    if (value.isTensorList()) return to_device(value.toTensorList());
    return value;
  }

  void check_places() const {
    if (tensors_.empty() || !of_cpu_ || kForBoth.contains(name_)) return;
    TORCH_CHECK(false,
                "Expected all tensors to be on the same device, but found at least two "
                "devices, cuda:0 and cpu! (",
                name_, ")");
  }

 private:
  static void set_shape(const at::Tensor& to, const at::Tensor& from) {
    c10::TensorImpl* const impl = to.unsafeGetTensorImpl();
    if (to.sizes() == from.sizes() && to.strides() == from.strides()) return;
    impl->set_sizes_and_strides(from.sizes(), from.strides());
  }

  at::Tensor to_host(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_cuda()) {
      of_cpu_ = of_cpu_ || tensor.dim() > 0;
      return tensor;
    }
    for (const auto& [host, device] : tensors_) {
      if (device.is_same(tensor)) return host;
    }
    at::Tensor host = on_host(tensor);
    for (const auto& [other, device] : tensors_) {  // which may share memory
      if (device.storage().is_alias_of(tensor.storage()))
        host.unsafeGetTensorImpl()->set_storage_keep_dtype(other.storage());
    }
    tensors_.emplace_back(host, tensor);
    return host;
  }

  c10::IValue to_host(const c10::List<at::Tensor>& list) {
    c10::List<at::Tensor> hosts;
    for (const at::Tensor& tensor : list) hosts.push_back(to_host(tensor));
    return hosts;
  }

  c10::IValue to_host(const c10::List<std::optional<at::Tensor>>& list) {
    c10::List<std::optional<at::Tensor>> hosts;
    for (const std::optional<at::Tensor>& tensor : list) {
      hosts.push_back(tensor ? std::optional(to_host(*tensor)) : std::nullopt);
    }
    return hosts;
  }

  at::Tensor to_device(const at::Tensor& host) {
    if (!host.defined()) return host;
    TORCH_CHECK(host.layout() == at::kStrided, name_, " of the fake GPU: not a dense tensor");
    for (const auto& [own, device] : tensors_) {
      if (own.is_same(host)) return device;
    }
    return with_storage(storage_of(host), host);
  }

  c10::IValue to_device(const c10::List<at::Tensor>& list) {
    c10::List<at::Tensor> devices;
    for (const at::Tensor& tensor : list) devices.push_back(to_device(tensor));
    return devices;
  }

  c10::Storage storage_of(const at::Tensor& host) const {
    for (const auto& [own, device] : tensors_) {  // a view of an argument
      if (own.storage().is_alias_of(host.storage())) return device.storage();
    }
    return {c10::Storage::use_byte_size_t(), host.storage().nbytes(), device_memory(host.storage()),
            c10::GetAllocator(c10::kCUDA), /*resizable=*/true};
  }

  static at::Tensor with_storage(c10::Storage storage, const at::Tensor& like) {
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), like.dtype());
    c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    impl->set_storage_offset(like.storage_offset());
    impl->set_sizes_and_strides(like.sizes(), like.strides());
    if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    return tensor;
  }

  std::string name_;
  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;  // of the CPU, of the device
  bool of_cpu_ = false;  // whether an argument with several elements is a plain tensor of the CPU
};

// Whether in this call the host would wait for a GPU.
bool waits(const std::string& name, const c10::IValue* arguments) {
  if (name == "aten::_local_scalar_dense") return true;
  if (name != "aten::copy_" || arguments[2].toBool()) return false;
  return arguments[0].toTensor().is_cuda() != arguments[1].toTensor().is_cuda();
}

void run_on_host(const c10::OperatorHandle& op, Stack* stack) {
  check_device();
  const auto& schema = op.schema();
  Call call(op);
  const std::size_t begin = stack->size() - schema.arguments().size();
  if (waits(schema.name(), &(*stack)[begin])) note_wait(schema.name());
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    c10::IValue& value = (*stack)[begin + i];
    value = call.to_host(value, schema.arguments()[i]);
  }
  call.check_places();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  try {
    op.callBoxed(stack);
  } catch (const c10::IndexError&) {
    break_device(
        "CUDA error: device-side assert triggered\nCUDA kernel errors might be "
        "asynchronously reported at some other API call");
    check_device();
  }
  call.write_back();
  const std::size_t results = stack->size() - schema.returns().size();
  for (std::size_t i = results; i < stack->size(); ++i) (*stack)[i] = call.to_device((*stack)[i]);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, std::int64_t offset,
                        at::IntArrayRef size, at::IntArrayRef stride) {
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(size, stride);
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

// Chooses the implementation that is composed of other operators.
std::int64_t choose_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                              const std::optional<at::Tensor>&, double, bool, std::optional<double>,
                              bool) {
  return 0;
}

}  // namespace

at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  const c10::Storage& memory = tensor.storage();
  c10::Storage alias(
      c10::Storage::use_byte_size_t(), memory.nbytes(),
      c10::DataPtr(
          memory.mutable_data(), new c10::Storage(memory),
          [](void* kept) { delete static_cast<c10::Storage*>(kept); }, c10::Device(c10::kCPU)),
      c10::GetAllocator(c10::kCPU), /*resizable=*/true);
  at::Tensor host = at::detail::make_tensor<c10::TensorImpl>(
      std::move(alias), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  c10::TensorImpl* const impl = host.unsafeGetTensorImpl();
  impl->set_storage_offset(tensor.storage_offset());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return host;
}

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  for (const char* name : {"copy_", "convolution", "convolution_backward"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
  }
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("_fused_sdp_choice", &choose_attention);
}

}  // namespace decent::fake_gpu
