#include "decent/comm/device_choice.h"

#include "decent/core/error.h"

namespace decent {

DeviceChoice choose_device(DeviceWish device, BackendWish backend, const Launch&) {
  if (device == DeviceWish::cuda || backend == BackendWish::nccl)
    throw UserError("this program was built without CUDA");
  return {};
}

std::string_view backend_name(Backend backend) { return backend == Backend::nccl ? "nccl" : "gloo"; }

}  // namespace decent
