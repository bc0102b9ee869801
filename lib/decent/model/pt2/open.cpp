#include "decent/model/pt2/open.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "decent/model/file_extras.h"
#include "decent/model/origin.h"
#include "decent/model/pt2/import.h"
#include "decent/onnx/report/batch_layout.h"
#include "decent/pt2/archive/records.h"
#include "decent/pt2/program/program.h"
#include "decent/pt2/report/report.h"
#include "decent/pt2/write/inference_form.h"
#include "decent/pt2/write/write.h"

namespace decent {
namespace {

// ---- a trained model that came from a .pt2 file, as a .pt2 file ------------------------------

// The present tensor for each tensor of the archive.
std::map<const pt2::Payload*, at::Tensor> tensors_of(const Pt2Import& import, const Model& model) {
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : model.state()) by_name.emplace(name, tensor);
  std::map<const pt2::Payload*, at::Tensor> tensors;
  for (const pt2::NamedPayload& each : import.translation.stored)
    tensors.emplace(each.payload, by_name.at(each.name));
  return tensors;
}

// Adds the program for inference if the archive has one program for both modes. An archive with a
// program for each mode already has it.
void add_inference_form(const Pt2Import& import, std::map<std::string, std::string>& records) {
  if (import.programs.are_two()) return;
  const pt2::ExportedProgram& program = *import.programs.train;
  const std::string record = pt2::program_record(program.name);
  const pt2::Records all(import.archive.file->bytes(), import.archive.what());
  auto form = pt2::inference_form(program, import.translation.modes, import.translation.writes,
                                  all.content(record));
  if (!form) return;
  records[record] = std::move(*form);
  const std::string lost = pt2::lost_for_inference(import.translation);
  if (!lost.empty()) records[record_of_extra(kLostInFile)] = lost;
}

// Writes the original archive with the parameters and buffers of `model`, which was made by
// `import`, in each of its programs. Throws UserError; WriteError.
void export_pt2(const Pt2Import& import, const Model& model, const std::filesystem::path& path,
                const FileExtras& extras) {
  const auto tensors = tensors_of(import, model);
  pt2::Changes changes;
  changes.elements = [&](const pt2::ExportedProgram& /*program*/, const std::string& /*name*/,
                         const pt2::Payload& payload, std::span<std::byte> elements) {
    const auto found = tensors.find(&payload);
    if (found == tensors.end()) return false;
    const at::Tensor now = found->second.detach().cpu().contiguous();
    if (!elements.empty()) std::memcpy(elements.data(), now.const_data_ptr(), elements.size());
    return true;
  };
  if (!extras.data.empty()) changes.records[record_of_extra(kDataInFile)] = extras.data;
  if (!extras.for_training) add_inference_form(import, changes.records);
  pt2::write_archive(import.archive, path, changes);
}

// ---- the shapes that a .pt2 file declares for its inputs, compared with batches of the data ----

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

// See ModelOrigin::input_mismatch. `name` is the input's name in the program.
std::optional<LayoutMismatch> pt2_input_mismatch(const pt2::ExportedProgram& program,
                                                 const std::string& name, const FedInput& input) {
  const auto meta = program.graph.tensor_values.find(name);
  if (meta == program.graph.tensor_values.end()) return std::nullopt;
  auto found =
      onnx::input_mismatch(declared(name, meta->second), input.field, input.batch, kAdvice);
  if (!found) return std::nullopt;
  return LayoutMismatch{std::move(found->text), std::move(found->way_out)};
}

// How many samples a batch must have, if an input's first dimension is fixed.
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

// See ModelOrigin::batch_advice.
std::string pt2_batch_advice(const pt2::ExportedProgram& program, std::int64_t samples) {
  const auto fixed = pt2_fixed_batch(program);
  if (!fixed || *fixed == samples) return "";
  const std::string batch = std::to_string(*fixed);
  return "\nThe file was exported for batches of " + batch + ", not of " + std::to_string(samples) +
         ". Set data.batch_size and data.eval_batch_size to " + batch + ", or " + kFreeBatch +
         " (docs/models.md)";
}

// ---- the file as a model ----

class Pt2Origin final : public ModelOrigin {
 public:
  explicit Pt2Origin(Pt2Import import)
      : import_(std::move(import)), lost_(text_in_archive(import_.archive.path(), kLostInFile)) {}

  std::vector<std::string> report(bool full) const override {
    return pt2::import_report({import_.archive, import_.programs, import_.translation},
                              full ? pt2::Detail::full : pt2::Detail::brief);
  }
  std::vector<std::string> training_notes() const override {
    return pt2::training_notes({import_.archive, import_.programs, import_.translation},
                               /*losses_are_known=*/!lost_.empty());
  }
  // The report names the operators that keep the mode of the export.
  bool fixes_modes_on_purpose() const override { return true; }
  std::string random_in_evaluation() const override {
    return pt2::random_in_evaluation(import_.translation);
  }
  std::string lost_for_inference() const override { return lost_; }
  std::string nothing_trainable(std::size_t parameters) const override;
  std::string argument_of(const std::string& name) const override;
  std::optional<LayoutMismatch> input_mismatch(const FedInput& input) const override;
  std::string batch_advice(std::int64_t samples) const override {
    return pt2_batch_advice(*import_.programs.train, samples);
  }
  std::optional<std::int64_t> fixed_batch() const override {
    return pt2_fixed_batch(*import_.programs.train);
  }
  void write_back(const Model& model, const std::filesystem::path& path,
                  const FileExtras& extras) const override {
    export_pt2(import_, model, path, extras);
  }

 private:
  const Pt2Import import_;
  const std::string lost_;
};

std::string Pt2Origin::nothing_trainable(std::size_t parameters) const {
  return "has no trainable parameter" +
         std::string(parameters == 0 ? "." : ": requires_grad is False for all of them.") +
         "\nIn Python, model.requires_grad_(True) before torch.export.export makes them trainable.";
}

std::string Pt2Origin::argument_of(const std::string& name) const {
  for (const auto& [input, argument] : import_.translation.arguments) {
    if (input == name) return argument;
  }
  return name;
}

std::optional<LayoutMismatch> Pt2Origin::input_mismatch(const FedInput& input) const {
  const auto& arguments = import_.translation.arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& [name, argument] = arguments[i];
    const bool is_named = input.name == name || input.name == argument;
    if (input.name.empty() ? i == input.position : is_named)
      return pt2_input_mismatch(*import_.programs.train, name, input);
  }
  return std::nullopt;
}

}  // namespace

OpenedModel open_pt2(const std::filesystem::path& path, const ImportOptions& options) {
  Pt2Import import = import_pt2(path);
  OpenedModel opened{
      .module = import.module, .origin = nullptr, .output = options.output, .logits_switch = ""};
  opened.origin = std::make_shared<const Pt2Origin>(std::move(import));
  return opened;
}

}  // namespace decent
