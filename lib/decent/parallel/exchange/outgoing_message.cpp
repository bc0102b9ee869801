#include "decent/parallel/exchange/outgoing_message.h"

#include <ATen/ops/empty.h>

#include "decent/comm/lost_workers.h"

namespace decent {
namespace {

// Room for other slices of the bucket, which have up to 32 more elements, as do their parts that
// are sent in more bits.
constexpr std::int64_t kMoreBytes = 512;

}  // namespace

void OutgoingMessage::begin(Communicator& communicator, std::int64_t step, std::int64_t bytes,
                            const at::Tensor& like) {
  try {
    if (memory_.defined()) communicator.wait_until_read(memory_);
  } catch (const GivenUp&) {
    memory_.reset();  // a lost worker may never have read it
  }
  if (!memory_.defined() || memory_.numel() < bytes) {
    const std::int64_t most = bytes + kMoreBytes;
    memory_ = like.is_cpu() ? communicator.memory_to_send(most) : at::Tensor();
    if (!memory_.defined()) memory_ = at::empty({most}, like.options().dtype(at::kByte));
  }
  bytes_ = bytes;
  step_ = step;
  made_ = 0;
}

}  // namespace decent
