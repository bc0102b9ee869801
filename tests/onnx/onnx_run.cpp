// Runs .onnx files through the importer, for tests that know what should come out.
//
//     onnx_run LIST
//     onnx_run --operators      # the table of operators, a name a line
//
// Each line of LIST is a folder that holds model.onnx and its inputs, input_0.pb, .. (TensorProto,
// or SequenceProto where the name ends in .seq.pb). Writes FOLDER/outputs.pt, a list of tensors and
// lists of tensors that torch.load reads, or FOLDER/error.txt; FOLDER/source.py has the
// TorchScript.

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>
#include <iostream>

#include "decent/core/file.h"
#include "decent/model/onnx/operators.h"
#include "decent/model/onnx/read.h"
#include "decent/model/onnx_import.h"
#include "decent/model/onnx_module.h"
#include "decent/model/torchscript_model.h"

namespace {

using Path = std::filesystem::path;

std::vector<at::Tensor> tensors_of(const Path& folder, const std::string& stem) {
  std::vector<at::Tensor> tensors;
  for (int i = 0;; ++i) {
    const Path path = folder / (stem + std::to_string(i) + ".pb");
    if (!std::filesystem::exists(path)) return tensors;
    const decent::MappedFile file(path);
    tensors.push_back(decent::to_torch(decent::onnx::read_tensor(file.bytes(), path)));
  }
}

std::vector<c10::IValue> inputs_of(const Path& folder, std::size_t count) {
  std::vector<c10::IValue> inputs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string stem = "input_" + std::to_string(i);
    const Path path = folder / (stem + ".pb");
    if (!std::filesystem::exists(path)) {
      inputs.emplace_back(tensors_of(folder, stem + "_"));  // a sequence: input_0_0.pb, ..
      continue;
    }
    const decent::MappedFile file(path);
    inputs.emplace_back(decent::to_torch(decent::onnx::read_tensor(file.bytes(), path)));
  }
  return inputs;
}

c10::IValue outputs_of(const c10::IValue& result, const std::vector<std::string>& names) {
  if (result.isTensor() || result.isTensorList()) return c10::ivalue::Tuple::create({result});
  if (result.isTuple()) return result;
  std::vector<c10::IValue> outputs;
  for (const std::string& name : names) outputs.push_back(result.toGenericDict().at(name));
  return c10::ivalue::Tuple::create(outputs);
}

void run(const Path& folder) {
  decent::OnnxImport imported = decent::import_onnx(folder / "model.onnx", {});
  std::ofstream(folder / "source.py") << imported.translation.module.methods;
  imported.module.eval();
  const at::NoGradGuard no_grad;
  const c10::IValue result =
      imported.module.forward(inputs_of(folder, imported.translation.arguments.size()));
  const std::vector<char> bytes =
      torch::jit::pickle_save(outputs_of(result, imported.translation.outputs));
  std::ofstream(folder / "outputs.pt", std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void print_operators() {
  for (const decent::onnx::Operator& each : decent::onnx::operator_table())
    std::cout << each.name << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--operators") return print_operators(), 0;
  decent::use_plain_executor();
  std::ifstream list(argv[1]);
  for (std::string folder; std::getline(list, folder);) {
    try {
      run(folder);
    } catch (const std::exception& error) {
      std::ofstream(Path(folder) / "error.txt") << error.what();
    }
  }
}
