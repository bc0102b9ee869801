#include "decent/model/inspect.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "decent/core/error.h"

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

bool has_suffix(const std::vector<std::string>& records, const std::string& suffix) {
  return std::any_of(records.begin(), records.end(),
                     [&](const std::string& name) { return name.ends_with(suffix); });
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

void walk(const torch::jit::Block* block, std::map<std::string, int>& counts) {
  for (const torch::jit::Node* node : block->nodes()) {
    for (const torch::jit::Block* inner : node->blocks()) walk(inner, counts);
    const torch::jit::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr) continue;
    for (const char* argument : {"train", "training"}) {
      const auto index = schema->argumentIndexWithName(argument);
      if (!index || static_cast<std::size_t>(*index) >= node->inputs().size()) continue;
      const torch::jit::Node* source = node->input(static_cast<std::size_t>(*index))->node();
      if (source->kind() == c10::prim::Constant) ++counts[node->kind().toUnqualString()];
    }
  }
}

}  // namespace

void check_is_torchscript(const std::filesystem::path& path) {
  check_exists(path);
  const std::string extension = path.extension().string();
  if (extension == ".onnx")
    throw UserError("model '" + path.string() + "': ONNX models are not supported yet");
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
  if (has_suffix(records, "model.json") ||
      has_suffix(records, "serialized_exported_program.json")) {
    refuse(path, "is a torch.export archive (.pt2), which is not supported yet");
  }
  if (!has_suffix(records, "constants.pkl")) {
    refuse(path,
           "is a pickled module or a state_dict, written by torch.save: it cannot run without its "
           "Python code");
  }
}

std::vector<std::string> find_fixed_mode_operators(const torch::jit::Module& module) {
  const auto method = module.find_method("forward");
  if (!method) return {};
  const auto graph = method->graph()->copy();
  torch::jit::Inline(*graph);
  std::map<std::string, int> counts;
  walk(graph->block(), counts);
  std::vector<std::string> result;
  for (const auto& [name, count] : counts) result.push_back(std::to_string(count) + " x " + name);
  return result;
}

std::string reason_of(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = c10_error ? c10_error->what_without_backtrace() : error.what();
  text = text.substr(0, text.find("\nException raised from"));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  // The interpreter puts its own traceback first and the reason last.
  if (text.find("Traceback of TorchScript") != std::string::npos)
    text = text.substr(text.rfind('\n') + 1);
  return text.substr(0, text.find('\n'));
}

}  // namespace decent
