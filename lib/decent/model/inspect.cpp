#include "decent/model/inspect.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <string_view>

#include "decent/core/error.h"
#include "decent/model/forward_graph.h"

namespace decent {
namespace {

const char* const kHowToExport =
    "Export it from Python with these two lines:\n"
    "    scripted = torch.jit.script(model)\n"
    "    scripted.save(\"model.pt\")";

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw UserError("model '" + path.string() + "' " + what + ".\n" + kHowToExport);
}

bool starts_with_zip(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> magic{};
  file.read(magic.data(), magic.size());
  return file && magic == std::array<char, 4>{'P', 'K', 3, 4};
}

bool has(const std::vector<std::string>& records, const std::string& name) {
  return std::find(records.begin(), records.end(), name) != records.end();
}

void check_exists(const std::filesystem::path& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(status))
    throw UserError("model '" + path.string() + "' does not exist");
  if (!std::filesystem::is_regular_file(status))
    throw UserError("model '" + path.string() + "' is not a file");
  if (!std::ifstream(path))
    throw UserError("model '" + path.string() + "' cannot be read: permission denied");
}

bool is_one_of(const torch::jit::Node* node, std::initializer_list<std::string_view> operators) {
  const bool is_aten = node->kind().is_aten();
  return is_aten && std::find(operators.begin(), operators.end(), node->kind().toUnqualString()) !=
                        operators.end();
}

bool has_constant_mode(const torch::jit::Node* node) {
  const torch::jit::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr) return false;
  for (const char* argument : {"train", "training"}) {
    const auto index = schema->argumentIndexWithName(argument);
    if (!index || static_cast<std::size_t>(*index) >= node->inputs().size()) continue;
    const torch::jit::Node* source = node->input(static_cast<std::size_t>(*index))->node();
    if (source->kind() == c10::prim::Constant) return true;
  }
  return false;
}

// Whether it gives a tensor on the CPU whatever its inputs are.
bool works_on_the_cpu(const torch::jit::Node* node) {
  if (std::string_view(node->kind().toUnqualString()) == "cpu") return true;
  const torch::jit::FunctionSchema* schema = node->maybeSchema();
  const auto index = schema ? schema->argumentIndexWithName("device") : std::nullopt;
  if (!index || static_cast<std::size_t>(*index) >= node->inputs().size()) return false;
  const auto device = torch::jit::toIValue(node->input(static_cast<std::size_t>(*index)));
  if (device && device->isDevice()) return device->toDevice().is_cpu();
  const auto inputs = node->inputs();
  const bool follows_an_input =
      std::any_of(inputs.begin(), inputs.end(), [](const torch::jit::Value* input) {
        return input->type()->isSubtypeOf(*c10::TensorType::get());
      });
  return device && device->isNone() && !follows_an_input;
}

// Whether it is told to give a tensor on a GPU.
bool works_on_a_gpu(const torch::jit::Node* node) {
  if (std::string_view(node->kind().toUnqualString()) == "cuda") return true;
  const auto inputs = node->inputs();
  return node->kind().is_aten() &&
         std::any_of(inputs.begin(), inputs.end(), [](const torch::jit::Value* input) {
           const auto device = torch::jit::toIValue(input);
           return device && device->isDevice() && device->toDevice().is_cuda();
         });
}

// "2 x dropout", for all that `counts`.
std::vector<std::string> count_operators(
    const torch::jit::Graph& forward, const std::function<bool(const torch::jit::Node*)>& counts) {
  std::map<std::string, int> found;
  visit_nodes(forward, [&](const torch::jit::Node* node) {
    if (counts(node)) ++found[node->kind().toUnqualString()];
  });
  std::vector<std::string> result;
  for (const auto& [name, count] : found) result.push_back(std::to_string(count) + " x " + name);
  return result;
}

}  // namespace

void check_is_torchscript(const std::filesystem::path& path) {
  check_exists(path);
  const std::string extension = path.extension().string();
  if (!starts_with_zip(path)) {
    refuse(path, extension == ".safetensors"
                     ? "holds weights only, not a model"
                     : "is not a TorchScript file (perhaps an old pickled one, or cut short)");
  }
  std::vector<std::string> records;
  try {
    records = caffe2::serialize::PyTorchStreamReader(path.string()).getAllRecords();
  } catch (const std::exception&) {
    refuse(path, "is damaged or not written by PyTorch: its archive cannot be read");
  }
  if (has(records, "models/model.json") || has(records, "serialized_exported_program.json")) {
    refuse(path, "is a torch.export archive (.pt2), which is not supported yet");
  }
  if (!has(records, "constants.pkl")) {
    refuse(path,
           "is a pickled module or a state_dict, written by torch.save: it cannot run without its "
           "Python code");
  }
}

std::vector<std::string> find_fixed_mode_operators(const torch::jit::Graph& forward) {
  return count_operators(forward, has_constant_mode);
}

std::vector<at::Tensor> find_tensor_constants(const torch::jit::Graph& forward) {
  std::vector<at::Tensor> constants;
  visit_nodes(forward, [&](const torch::jit::Node* node) {
    if (node->kind() != c10::prim::Constant || !node->hasAttribute(c10::attr::value)) return;
    if (node->kindOf(c10::attr::value) != torch::jit::AttributeKind::t) return;
    const at::Tensor& constant = node->t(c10::attr::value);
    const auto is_known = [&](const at::Tensor& other) { return other.is_same(constant); };
    if (constant.defined() && std::none_of(constants.begin(), constants.end(), is_known)) {
      constants.push_back(constant);
    }
  });
  return constants;
}

std::vector<std::string> find_cpu_operators(const torch::jit::Graph& forward) {
  return count_operators(forward, works_on_the_cpu);
}

std::vector<std::string> find_gpu_operators(const torch::jit::Graph& forward) {
  return count_operators(forward, works_on_a_gpu);
}

bool reads_data_of_tensors(const torch::jit::Graph& forward) {
  bool found = false;
  visit_nodes(forward, [&](const torch::jit::Node* node) {
    found = found || std::string_view(node->kind().toUnqualString()) == "data";
  });
  return found;
}

bool ends_in_sigmoid(const torch::jit::Graph& forward) {
  if (forward.outputs().size() != 1) return false;
  const torch::jit::Node* node = forward.outputs().front()->node();
  while (is_one_of(node, {"view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous", "to",
                          "permute", "transpose", "select", "slice"}))
    node = node->inputs().front()->node();
  return is_one_of(node, {"sigmoid", "sigmoid_", "special_expit"});
}

}  // namespace decent
