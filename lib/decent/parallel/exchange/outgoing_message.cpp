#include "decent/parallel/exchange/outgoing_message.h"

#include <ATen/ops/empty.h>

namespace decent {

void OutgoingMessage::begin(Communicator& world, std::int64_t step, std::int64_t bytes,
                            const at::Tensor& like) {
  if (memory_.defined()) world.wait_until_read(memory_);
  if (!memory_.defined() || memory_.numel() < bytes) {
    memory_ = like.is_cpu() ? world.memory_to_send(bytes) : at::Tensor();
    if (!memory_.defined()) memory_ = at::empty({bytes}, like.options().dtype(at::kByte));
  }
  bytes_ = bytes;
  step_ = step;
  made_ = 0;
}

}  // namespace decent
