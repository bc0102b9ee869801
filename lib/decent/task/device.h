#pragma once
// The device of a run: which one it is, and its name for the user; what the recipe is used for.

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "decent/comm/device_choice.h"
#include "decent/comm/launch.h"
#include "decent/comm/outcome.h"
#include "decent/config/recipe.h"
#include "decent/data/batch.h"

namespace decent {

/// Training needs data.train and data.eval, evaluation only data.eval, prediction data.predict;
/// `model` reads and writes model files and needs none.
enum class Purpose { training, evaluation, prediction, evaluation_and_prediction, model };

constexpr bool reads_eval(Purpose purpose) {
  return purpose == Purpose::training || purpose == Purpose::evaluation ||
         purpose == Purpose::evaluation_and_prediction;
}

constexpr bool predicts(Purpose purpose) {
  return purpose == Purpose::prediction || purpose == Purpose::evaluation_and_prediction;
}

/// The device and backend on this worker that follow from model.device and parallel.backend. Always
/// the CPU if a model is only read and written. Throws UserError naming the key if that is
/// impossible.
DeviceChoice device_for(const Recipe& recipe, const Launch& launch, Purpose purpose);

/// The same with another function in place of choose_device(), for tests.
using DeviceChooser = std::function<DeviceChoice(DeviceRequest, BackendRequest, const Launch&)>;
DeviceChoice device_for(const Recipe& recipe, const Launch& launch, Purpose purpose,
                        const DeviceChooser& choose);

/// For the user: "cpu", "cuda (NVIDIA H100 80GB HBM3), exchange by nccl"; one worker exchanges
/// nothing.
std::string device_text(const DeviceChoice& choice, int workers);

/// Limits LibTorch, which starts a thread for every processor that the scheduler may use, to the
/// processor time that a control group allows. OMP_NUM_THREADS has precedence.
void limit_threads();

/// The most MiB of a GPU that tensors took since the last call, or the start; nullopt on the CPU.
std::optional<double> take_peak_mb(at::Device device);

/// The kind of host memory into which batches for `device` are read.
HostMemory host_memory_for(at::Device device);

/// The first action of a thread that reads batches for `device` (Prefetcher): it chooses the GPU,
/// because allocating pinned memory uses one. Null for the CPU.
std::function<void()> thread_start_for(at::Device device);

/// The outcome for the user of a GPU's error (core/gpu_errors.h); nullopt for other errors.
std::optional<Outcome> device_trouble(const std::exception& error);

}  // namespace decent
