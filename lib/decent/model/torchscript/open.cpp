#include "decent/model/torchscript/open.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/graph_iterator.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/file_kind.h"
#include "decent/model/reason.h"
#include "decent/model/weights/script_module.h"
#include "decent/model/weights/state_dict.h"

namespace decent {
namespace {

using torch::jit::Node;

// aten::to.device(self, device, dtype, non_blocking, copy, memory_format) of a constant.
bool pins_a_literal(const Node* node) {
  constexpr std::size_t kArguments = 6;
  if (node->kind() != c10::aten::to || node->inputs().size() != kArguments) return false;
  const auto literal = torch::jit::toIValue(node->input(0));
  const auto device = torch::jit::toIValue(node->input(1));
  return literal && literal->isTensor() && device && device->isDevice();
}

// torch.jit.trace records torch.tensor([1., 2.]) as a constant and aten::to(constant, "cpu", ..),
// with the device that it was traced on. This removes the device from such calls, so that the
// constant stays on the model's device. Must be called before forward runs.
void let_literals_follow(const torch::jit::Module& module) {
  for (const torch::jit::Module& part : module.modules()) {
    for (const torch::jit::Method& method : part.get_methods()) {
      std::shared_ptr<torch::jit::Graph> graph = method.graph();
      torch::jit::DepthFirstGraphNodeIterator nodes(graph);
      while (Node* node = nodes.next()) {
        if (pins_a_literal(node)) node->removeInput(1);  // leaves aten::to.dtype(self, ..)
      }
    }
  }
}

const char* const kHowToExport =
    "Export it from Python with these two lines:\n"
    "    scripted = torch.jit.script(model)\n"
    "    scripted.save(\"model.pt\")";

bool starts_with_zip(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> magic{};
  file.read(magic.data(), magic.size());
  return file && magic == std::array<char, 4>{'P', 'K', 3, 4};
}

bool has(const std::vector<std::string>& records, const std::string& name) {
  return std::find(records.begin(), records.end(), name) != records.end();
}

// Whether the file is a state_dict, by itself or in a checkpoint, that model.weights would take.
bool holds_state_dict(std::span<const std::byte> bytes) {
  try {
    const TorchFile file = read_torch_file(bytes, "");
    return !holds_script_module(file) && !read_state_dict(file).empty();
  } catch (const UserError&) {
    return false;
  }
}

void refuse_other_files(const std::filesystem::path& path) {
  const MappedFile file(path);
  const FileKind kind = kind_of_file(file.bytes());
  if (kind == FileKind::torchscript || kind == FileKind::torch_export || kind == FileKind::zip)
    return;
  if (kind == FileKind::torch_save && holds_state_dict(file.bytes())) {
    refuse_model_file(path,
                      "is a state_dict, weights without the model: model.weights reads it, and "
                      "model.path wants the model");
  }
  if (kind != FileKind::torch_save && kind != FileKind::unknown)
    refuse_model_file(path, "is " + kind_text(kind) + ", not a TorchScript file");
}

// Archives of PyTorch are told apart by the names of their records.
void check_is_torchscript(const std::filesystem::path& path) {
  check_is_file(path);
  refuse_other_files(path);
  if (!starts_with_zip(path)) {
    refuse_model_file(path, "is not a TorchScript file (perhaps an old pickled one, or cut short)");
  }
  std::vector<std::string> records;
  try {
    records = caffe2::serialize::PyTorchStreamReader(path.string()).getAllRecords();
  } catch (const std::exception&) {
    refuse_model_file(path, "is damaged or not written by PyTorch: its archive cannot be read");
  }
  if (has(records, "models/model.json") || has(records, "serialized_exported_program.json")) {
    throw UserError(model_in_quotes(path) +
                    " is a torch.export archive: give its name the ending .pt2");
  }
  if (!has(records, "constants.pkl")) {
    refuse_model_file(
        path,
        "is a pickled module or a state_dict, written by torch.save: it cannot run without its "
        "Python code");
  }
}

torch::jit::Module load(const std::filesystem::path& path) {
  try {
    return torch::jit::load(path.string(), at::kCPU);
  } catch (const std::exception& error) {
    throw UserError(model_in_quotes(path) + " cannot be loaded: " + reason_of(error));
  }
}

void check_module(const torch::jit::Module& module, const std::filesystem::path& path) {
  if (!module.find_method("forward"))
    throw UserError(model_in_quotes(path) + " has no forward method");
  if (module.hasattr("training")) return;
  throw UserError(model_in_quotes(path) +
                  " was frozen for inference (torch.jit.freeze or optimize_for_inference): its "
                  "parameters became constants.\nExport it before freezing: "
                  "torch.jit.script(model).save(\"model.pt\")");
}

class TorchScriptOrigin final : public ModelOrigin {
 public:
  std::string nothing_trainable(std::size_t parameters) const override {
    const std::string which =
        parameters == 1 ? "its only one." : "all " + std::to_string(parameters) + " of them.";
    return "has no trainable parameter" +
           (parameters == 0 ? "." : ": requires_grad is False for " + which) +
           "\nIn Python, model.requires_grad_(True) before "
           "torch.jit.script(model).save(\"model.pt\") makes them trainable.";
  }
};

}  // namespace

void check_is_file(const std::filesystem::path& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(status)) throw UserError(model_in_quotes(path) + " does not exist");
  if (std::filesystem::is_directory(status))
    throw UserError(model_in_quotes(path) +
                    " is a folder, which is not a file: give the model's file (.pt, .pt2, .onnx)");
  if (!std::filesystem::is_regular_file(status))
    throw UserError(model_in_quotes(path) + " is not a file");
  if (!std::ifstream(path))
    throw UserError(model_in_quotes(path) + " cannot be read: permission denied");
}

void refuse_model_file(const std::filesystem::path& path, const std::string& what) {
  throw UserError(model_in_quotes(path) + " " + what + ".\n" + kHowToExport);
}

OpenedModel open_torchscript(const std::filesystem::path& path, const ImportOptions& options) {
  check_is_torchscript(path);
  torch::jit::Module module = load(path);
  check_module(module, path);
  let_literals_follow(module);
  return {.module = std::move(module),
          .origin = std::make_shared<const TorchScriptOrigin>(),
          .output = options.output,
          .logits_switch = ""};
}

}  // namespace decent
