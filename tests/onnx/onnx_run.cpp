// Runs .onnx files through the importer, for tests that know what should come out.
//
//     onnx_run LIST
//     onnx_run --operators      # the table of operators, a name a line
//
// Each line of LIST is a folder that holds model.onnx and its inputs, input_0.pb, .. (TensorProto,
// or those of a sequence input_0_0.pb, ..). Writes the elements of outputs to FOLDER/output_0, ..
// (a sequence's to output_0_0,
// ..) and FOLDER/outputs.txt, a line "output_0 float32 2 3" for each and "output_0 list 2" before
// those of a sequence; or FOLDER/error.txt. FOLDER/source.py has the TorchScript.

#include <ATen/core/grad_mode.h>

#include <fstream>
#include <iostream>

#include "decent/core/file.h"
#include "decent/model/model.h"
#include "decent/model/onnx/import.h"
#include "decent/model/onnx/module.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/translate/operators.h"

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

// Its elements, and the line about it.
void write_tensor(const Path& folder, const std::string& name, const at::Tensor& tensor) {
  const decent::onnx::Tensor elements = decent::from_torch(tensor);
  decent::write_file(folder / name, {reinterpret_cast<const char*>(elements.elements().data()),
                                     elements.elements().size()});
  std::ofstream lines(folder / "outputs.txt", std::ios::app);
  lines << name << ' ' << decent::onnx::name_of(elements.type);
  for (const std::int64_t dim : elements.dims) lines << ' ' << dim;
  lines << '\n';
}

void write_output(const Path& folder, const std::string& name, const c10::IValue& output) {
  if (output.isTensor()) return write_tensor(folder, name, output.toTensor());
  const std::vector<at::Tensor> list = output.toTensorVector();
  std::ofstream(folder / "outputs.txt", std::ios::app) << name << " list " << list.size() << '\n';
  for (std::size_t i = 0; i < list.size(); ++i)
    write_tensor(folder, name + "_" + std::to_string(i), list[i]);
}

std::vector<c10::IValue> outputs_of(const c10::IValue& result,
                                    const std::vector<std::string>& names) {
  if (result.isTensor() || result.isTensorList()) return {result};
  if (result.isTuple()) return result.toTupleRef().elements().vec();
  std::vector<c10::IValue> outputs;
  for (const std::string& name : names) outputs.push_back(result.toGenericDict().at(name));
  return outputs;
}

void run(const Path& folder) {
  decent::OnnxImport imported = decent::import_onnx(folder / "model.onnx", {});
  std::ofstream(folder / "source.py") << imported.translation.module.methods;
  imported.module.eval();
  const at::NoGradGuard no_grad;
  const auto outputs =
      outputs_of(imported.module.forward(inputs_of(folder, imported.translation.arguments.size())),
                 imported.translation.outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    write_output(folder, "output_" + std::to_string(i), outputs[i]);
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
