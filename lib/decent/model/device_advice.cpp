#include "decent/model/device_advice.h"

#include <string_view>
#include <vector>

#include "decent/core/text.h"
#include "decent/model/forward_graph.h"
#include "decent/model/inspect.h"

namespace decent {
namespace {

std::string in_brackets(const std::vector<std::string>& operators) {
  return operators.empty() ? "" : " (" + join(operators) + ")";
}

bool mentions(const std::string& reason, std::string_view word) {
  return reason.find(word) != std::string::npos;
}

}  // namespace

std::string device_advice(const std::string& reason, const torch::jit::Module& module,
                          at::Device device) {
  const bool mixes = mentions(reason, "cpu") || mentions(reason, "CPU");
  if (device.is_cpu() || !mixes) return "";
  const std::vector<std::string> found = find_cpu_operators(*forward_graph(module));
  return "\nThe model makes tensors on the CPU" + in_brackets(found) +
         ": torch.jit.trace writes its device into the file, and without device=.. the CPU is "
         "taken.\nMake them where an input is (device=x.device) and export with torch.jit.script, "
         "or set model.device: cpu.";
}

std::optional<std::string> gpu_wish(const std::string& reason, const torch::jit::Module& module,
                                    at::Device device) {
  if (!device.is_cpu() || !(mentions(reason, "CUDA") || mentions(reason, "cuda")))
    return std::nullopt;
  const std::vector<std::string> found = find_gpu_operators(*forward_graph(module));
  return "its code makes tensors on a GPU" + in_brackets(found) +
         ", and it runs on the CPU.\nWrite device=x.device in its code, which is where an input "
         "is; a model that is traced must be traced on the CPU (model.cpu(), CPU inputs). On a GPU "
         "it "
         "trains as it is, with model.device: cuda.";
}

}  // namespace decent
