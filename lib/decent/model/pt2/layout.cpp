#include "decent/model/pt2/layout.h"

#include "decent/onnx/report/batch_layout.h"

namespace decent {
namespace {

constexpr const char* kFreeBatch =
    "export with a free batch: dynamic_shapes=({0: torch.export.Dim(\"batch\")},)";

constexpr onnx::ExportAdvice kAdvice = {
    .producer = "torch.export",
    .free_batch = kFreeBatch,
    .free_sizes = "export with these dimensions in dynamic_shapes",
    .batch_first =
        "export it with batch_first=True, or with x.transpose(0, 1) at the start and "
        "the end of forward"};

// The input in ONNX's form, which the comparison takes.
onnx::ValueInfo declared(const std::string& name, const pt2::TensorMeta& meta) {
  onnx::ValueInfo value;
  value.name = name;
  value.shape.emplace();
  for (const pt2::SymInt& size : meta.sizes)
    value.shape->push_back({size.value, pt2::symbol_of(size).value_or("")});
  return value;
}

}  // namespace

std::optional<LayoutMismatch> pt2_input_mismatch(const pt2::ExportedProgram& program,
                                                 const std::string& name, const FedInput& input) {
  const auto meta = program.graph.tensor_values.find(name);
  if (meta == program.graph.tensor_values.end()) return std::nullopt;
  auto found =
      onnx::input_mismatch(declared(name, meta->second), input.field, input.batch, kAdvice);
  if (!found) return std::nullopt;
  return LayoutMismatch{std::move(found->text), std::move(found->way_out)};
}

std::optional<std::int64_t> pt2_fixed_batch(const pt2::ExportedProgram& program) {
  for (const pt2::InputSpec& input : program.input_specs) {
    const auto* user = std::get_if<pt2::UserInput>(&input);
    const auto* tensor = user == nullptr ? nullptr : std::get_if<pt2::TensorArgument>(&user->arg);
    if (tensor == nullptr) continue;
    const auto& sizes = program.graph.tensor_values.at(tensor->name).sizes;
    if (!sizes.empty() && sizes.front().value) return sizes.front().value;
  }
  return std::nullopt;
}

std::string pt2_batch_advice(const pt2::ExportedProgram& program, std::int64_t samples) {
  const auto fixed = pt2_fixed_batch(program);
  if (!fixed || *fixed == samples) return "";
  const std::string batch = std::to_string(*fixed);
  return "\nThe file was exported for batches of " + batch + ", not of " + std::to_string(samples) +
         ". Set data.batch_size and data.eval_batch_size to " + batch + ", or " + kFreeBatch +
         " (docs/models.md)";
}

}  // namespace decent
