#include "decent/core/gpu_errors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "decent/core/host.h"

namespace decent {
namespace {

constexpr std::string_view kLessMemory =
    "\nA smaller data.batch_size or data.batch_tokens (with train.grad_accumulation in its place) "
    "or amp.dtype: bf16 needs less memory.";
constexpr std::string_view kFragments =
    "\nMuch of the memory that LibTorch holds is free in pieces that are too small: "
    "PYTORCH_ALLOC_CONF=expandable_segments:True in the environment lets it join them.";

// HOST stands for this machine.
constexpr std::string_view kBroken =
    "\nThis is a fault of the GPU or of its connection, on host 'HOST': dmesg (lines with Xid) and "
    "nvidia-smi -q there say more.";
constexpr std::string_view kKernel =
    "\nA kernel wrote or read where it must not: a fault of an operator of the model, or of the "
    "GPU of host 'HOST'.\nThere dmesg (lines with Xid) and nvidia-smi -q tell of faults of the "
    "GPU; "
    "with CUDA_LAUNCH_BLOCKING=1 in the environment the message names the operator.";

struct Row {
  std::string_view says;
  ExitCode code;
  std::string_view advice;
  std::string_view also = "";  // must be in the text, too
};

// The first row that matches counts.
constexpr auto kRows = std::to_array<Row>({
    // LibTorch's allocator, after it has given back all the memory that it held in reserve.
    {"CUDA out of memory", ExitCode::user_error, kLessMemory},
    {"would exceed allowed memory", ExitCode::user_error, kLessMemory},
    // Libraries report in their own words that they found no memory for themselves.
    {"CUBLAS_STATUS_ALLOC_FAILED", ExitCode::user_error, kLessMemory},
    {"CUBLAS_STATUS_NOT_INITIALIZED", ExitCode::user_error, kLessMemory},
    {"CUDNN_STATUS_ALLOC_FAILED", ExitCode::user_error, kLessMemory},
    {"CUDNN_STATUS_EXECUTION_FAILED", ExitCode::user_error, kLessMemory},
    {"out of memory", ExitCode::user_error, kLessMemory, "NCCL"},
    {"out of memory", ExitCode::user_error, kLessMemory, "Cuda failure"},  // NCCL's, too
    // The driver's: a context, a module, pinned memory of the host.
    {"out of memory", ExitCode::user_error,
     "\nThe GPU is full, perhaps of what other processes hold (nvidia-smi lists them), or the "
     "system does not allow as much pinned memory of the host (ulimit -l, the limit of the "
     "container).\nElse a smaller data.batch_size or data.batch_tokens (with "
     "train.grad_accumulation in its place) needs less."},
    {"device-side assert", ExitCode::user_error,
     "\nA kernel on the GPU found an input that makes no sense, in most cases an index that is out "
     "of range, as of a token that an embedding does not have.\nWith model.device: cpu the same "
     "run names it."},
    {"no kernel image is available", ExitCode::user_error,
     "\nThe GPU of host 'HOST' is of a kind that this build has no code for; it needs compute "
     "capability 7.5 (Turing) or later. model.device: cpu does without."},
    {"Duplicate GPU detected", ExitCode::user_error,
     "\nNCCL needs a GPU of its own for each worker: start no more workers than there are GPUs, or "
     "set parallel.backend: gloo."},
    {"busy or unavailable", ExitCode::peer_lost,
     "\nAnother process has the GPU of host 'HOST' for itself, or its MPS server has ended: "
     "nvidia-smi there shows processes and the compute mode."},
    {"uncorrectable", ExitCode::peer_lost, kBroken},  // ECC, NVLink
    {"fallen off the bus", ExitCode::peer_lost, kBroken},
    {"hardware stack error", ExitCode::peer_lost, kBroken},
    {"nvlink or a hardware error", ExitCode::peer_lost, kBroken},
    {"illegal memory access", ExitCode::peer_lost, kKernel},
    {"illegal instruction", ExitCode::peer_lost, kKernel},
    {"misaligned address", ExitCode::peer_lost, kKernel},
    {"unspecified launch failure", ExitCode::peer_lost, kKernel},
    {"CUBLAS_STATUS_EXECUTION_FAILED", ExitCode::peer_lost, kKernel},
});

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "out of memory" alone may be about something else than a GPU.
bool is_of_a_gpu(std::string_view text) {
  constexpr std::string_view kNames[] = {"CUDA", "Cuda", "GPU", "NCCL", "CUBLAS", "CUDNN"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return contains(text, name); });
}

// "2.00 GiB" in bytes; 0 if the text is no such amount.
double bytes_of(std::string_view amount) {
  double value = 0;
  const auto [end, error] = std::from_chars(amount.data(), amount.data() + amount.size(), value);
  if (error != std::errc()) return 0;
  const std::string_view unit(end, static_cast<std::size_t>(amount.data() + amount.size() - end));
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {" bytes", 1}, {" KiB", 0x1p10}, {" MiB", 0x1p20}, {" GiB", 0x1p30}};
  for (const auto& [name, size] : kUnits) {
    if (unit.starts_with(name)) return value * size;
  }
  return 0;
}

// Whether the memory that LibTorch's allocator could not find in one piece was free in several:
// "CUDA out of memory. Tried to allocate 2.00 GiB. .. and 3.00 GiB is reserved by PyTorch but
// unallocated. ..".
bool is_in_pieces(std::string_view text) {
  constexpr std::string_view kWanted = "Tried to allocate ";
  const std::size_t wanted = text.find(kWanted);
  const std::size_t reserved = text.find(" is reserved by PyTorch but unallocated");
  if (wanted == text.npos || reserved == text.npos) return false;
  const std::size_t unit = text.rfind(' ', reserved - 1);
  if (unit == text.npos || unit == 0) return false;
  const double free = bytes_of(text.substr(text.rfind(' ', unit - 1) + 1));
  return free > 0 && free >= bytes_of(text.substr(wanted + kWanted.size()));
}

std::string with_host(std::string text) {
  constexpr std::string_view kName = "HOST";
  if (const std::size_t at = text.find(kName); at != text.npos)
    text.replace(at, kName.size(), host_name());
  return text;
}

}  // namespace

std::optional<GpuError> gpu_error_of(std::string_view text) {
  if (!is_of_a_gpu(text)) return std::nullopt;
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& each) {
    return contains(text, each.says) && contains(text, each.also);
  });
  if (row == kRows.end()) return std::nullopt;
  const std::string_view more = is_in_pieces(text) ? kFragments : "";
  return GpuError{.code = row->code,
                  .advice = with_host(std::string(row->advice)) + std::string(more)};
}

void GpuError::raise(const std::string& message) const {
  if (code == ExitCode::peer_lost) throw PeerLost(message + advice);
  throw UserError(message + advice);
}

}  // namespace decent
