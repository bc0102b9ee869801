#include "decent/model/onnx/open.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/file_extras.h"
#include "decent/model/onnx/import.h"
#include "decent/model/onnx/module.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/format/walk.h"
#include "decent/onnx/report/batch_layout.h"
#include "decent/onnx/report/gradient_paths.h"
#include "decent/onnx/report/report.h"
#include "decent/onnx/write/write.h"
#include "decent/onnx/write/write_external.h"

namespace decent {
namespace {

// ---- a trained model that came from an .onnx file, as an .onnx file --------------------------

using TensorsByName = std::map<std::string, at::Tensor>;
using TensorsByPlace = std::map<std::uint64_t, const onnx::Tensor*>;

at::ScalarType type_in_file(onnx::ElementType type) {
  switch (type) {
    case onnx::ElementType::float16:
      return at::kHalf;
    case onnx::ElementType::bfloat16:
      return at::kBFloat16;
    case onnx::ElementType::float64:
      return at::kDouble;
    default:
      return at::kFloat;
  }
}

// Otherwise a weight that is finite in training but not in the file's type would be lost silently.
at::Tensor rounded(const std::string& name, const at::Tensor& weight, onnx::ElementType type) {
  at::Tensor result = weight.detach().to(at::kCPU).to(type_in_file(type));
  const bool lost = at::isfinite(weight.detach().to(at::kCPU)).sum().item<std::int64_t>() !=
                    at::isfinite(result).sum().item<std::int64_t>();
  if (!lost) return result;
  throw UserError("'" + name + "' has values beyond what " + std::string(onnx::name_of(type)) +
                  ", its type in the .onnx file, can hold. --export to .pt or .safetensors keeps "
                  "them");
}

TensorsByName tensors_of(const Model& model) {
  TensorsByName tensors;
  for (const auto& [name, tensor] : model.state()) tensors.emplace(name, tensor);
  return tensors;
}

// The imported graph is a copy of the file's graph with inlined functions, but the original file is
// written. The place of a tensor's elements in the file identifies it in both.
TensorsByPlace tensors_by_place(const onnx::Model& file) {
  TensorsByPlace tensors;
  onnx::for_each_tensor(file, [&](const onnx::Tensor& tensor) {
    if (!tensor.fields.empty()) tensors.emplace(tensor.fields.front().begin, &tensor);
  });
  return tensors;
}

onnx::NewElements new_elements(const onnx::Tensor& tensor, const std::string& name,
                               const at::Tensor& weight) {
  const onnx::Tensor now = from_torch(rounded(name, weight, tensor.type));
  const auto bytes = now.elements();
  return {&tensor, {bytes.begin(), bytes.end()}};
}

/// A tensor of the file and its counterpart in the module.
struct KeptTensor {
  const onnx::Tensor& tensor;
  const onnx::Node* identity;  // that renames it; null: the initializer itself
  const std::string& name;
  at::Tensor weight;
};

std::vector<KeptTensor> kept_tensors(const onnx::Classification& classification,
                                     const Model& model) {
  const TensorsByName tensors = tensors_of(model);
  std::vector<KeptTensor> kept;
  const auto add = [&](const onnx::Classified& classified, const onnx::Node* identity) {
    const auto found = tensors.find(classified.name);
    if (!onnx::is_kept(classified.role) || found == tensors.end()) return;  // or no node reads it
    kept.push_back({*classified.tensor, identity, classified.name, found->second});
  };
  for (const auto& [tensor, classified] : classification.initializers) add(classified, nullptr);
  for (const auto& [node, classified] : classification.own) add(classified, node);
  return kept;
}

void add_own_initializer(const KeptTensor& kept, onnx::Changes& changes) {
  onnx::Tensor now = from_torch(rounded(kept.name, kept.weight, kept.tensor.type));
  if (std::ranges::equal(now.elements(), kept.tensor.elements())) return;
  now.name = kept.identity->outputs.front();
  changes.own.push_back({kept.identity, std::move(now)});
}

// Writes the original file with the parameters and running statistics of `model`, which was made
// by `import`, in the types of the file; see onnx/write.h. Throws UserError if a weight is beyond
// the range of its type in the file; WriteError.
void export_onnx(const OnnxImport& import, const Model& model, const std::filesystem::path& path,
                 const FileExtras& extras) {
  const onnx::Model& file = *import.file;
  const TensorsByPlace in_file = tensors_by_place(file);
  onnx::Changes changes;
  if (!extras.data.empty()) changes.metadata[kDataInFile] = extras.data;
  changes.for_training = extras.for_training;
  changes.masks = import.masks;
  if (!extras.for_training && !import.masks.empty())
    changes.metadata[kLostInFile] = "off: " + counted(std::ssize(import.masks), "dropout") +
                                    " or stochastic depth, which random numbers made";
  for (const KeptTensor& kept : kept_tensors(import.classification, model)) {
    if (kept.identity != nullptr) {
      add_own_initializer(kept, changes);
    } else if (!kept.tensor.fields.empty()) {  // it has elements
      const auto own = in_file.find(kept.tensor.fields.front().begin);
      const bool is_list = own == in_file.end();  // floats, which are no tensor in the file
      changes.elements.push_back(
          new_elements(is_list ? kept.tensor : *own->second, kept.name, kept.weight));
    }
  }
  onnx::write_model(file, changes, path);
}

// Rounds the model's weights to the file's element types (float16, bfloat16), so that the model
// computes the same as the written file.
void round_to_file_types(const OnnxImport& import, Model& model) {
  const at::NoGradGuard no_grad;
  for (const KeptTensor& kept : kept_tensors(import.classification, model)) {
    if (onnx::is_half(kept.tensor.type))
      kept.weight.copy_(rounded(kept.name, kept.weight, kept.tensor.type));
  }
}

// ---- the file as a model ---------------------------------------------------------------------

// "a, b and 3 more": tensors that may be weights but that the import freezes, the largest first; ""
// if there are none.
std::string frozen_names(const onnx::Classification& classification) {
  constexpr std::size_t kMaxNamed = 3;
  std::vector<const onnx::Classified*> frozen;
  for (const auto& [tensor, classified] : classification.initializers)
    if (classified.role == onnx::Role::ambiguous) frozen.push_back(&classified);
  std::sort(frozen.begin(), frozen.end(), [](const auto* a, const auto* b) {
    return std::pair(-a->tensor->count(), a->name) < std::pair(-b->tensor->count(), b->name);
  });
  std::vector<std::string> names;
  for (const onnx::Classified* each : frozen) names.push_back(each->name);
  return some_of(names, kMaxNamed);
}

std::optional<LayoutMismatch> from_onnx(std::optional<onnx::LayoutMismatch> mismatch) {
  if (!mismatch) return std::nullopt;
  return LayoutMismatch{std::move(mismatch->text), std::move(mismatch->way_out)};
}

// Advice if a shape shows that the file was exported for another number of samples.
std::string advice_for(const onnx::ValueInfo& value, std::int64_t samples,
                       const onnx::ExportAdvice& advice) {
  const std::int64_t fixed = value.shape->front().value.value_or(0);
  if (fixed == 0 || fixed == samples) return "";
  const std::string batch = std::to_string(fixed);
  return "\nThe file was exported for batches of " + batch + ", not of " + std::to_string(samples) +
         ". Set data.batch_size and data.eval_batch_size to " + batch + ", or " +
         std::string(advice.free_batch) + " (docs/onnx.md)";
}

class OnnxOrigin final : public ModelOrigin {
 public:
  explicit OnnxOrigin(OnnxImport import) : import_(std::move(import)) {}

  std::vector<std::filesystem::path> other_files() const override;
  std::vector<std::string> report(bool full) const override;
  std::vector<std::string> training_notes() const override { return onnx::training_notes(facts()); }
  std::string nothing_trainable(std::size_t parameters) const override;
  void check_gradients(std::span<const std::string> frozen) const override;
  std::string argument_of(const std::string& name) const override;
  std::optional<LayoutMismatch> input_mismatch(const FedInput& input) const override;
  std::optional<LayoutMismatch> output_mismatch(
      std::optional<std::int64_t> class_dim) const override;
  std::string batch_advice(std::int64_t samples) const override;
  std::optional<std::int64_t> fixed_batch() const override;
  std::optional<ProbabilityOutput> probabilities() const override;
  std::string random_in_evaluation() const override {
    return onnx::random_in_evaluation(import_.translation);
  }
  std::string lost_for_inference() const override {
    return text_in_metadata(import_.file->metadata, kLostInFile);
  }
  void write_back(const Model& model, const std::filesystem::path& path,
                  const FileExtras& extras) const override {
    export_onnx(import_, model, path, extras);
  }
  void round_to_file_types(Model& model) const override {
    decent::round_to_file_types(import_, model);
  }

 private:
  onnx::ImportFacts facts() const {
    return {.file = *import_.file,
            .model = *import_.model,
            .patterns = import_.patterns,
            .classification = import_.classification,
            .translation = import_.translation};
  }

  OnnxImport import_;
};

// The first file is the model's own.
std::vector<std::filesystem::path> OnnxOrigin::other_files() const {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : import_.file->files) {
    if (file != import_.file->files.front()) paths.push_back(file->path());
  }
  return paths;
}

std::vector<std::string> OnnxOrigin::report(bool full) const {
  std::vector<std::string> lines =
      onnx::import_report(facts(), full ? onnx::Detail::full : onnx::Detail::brief);
  for (const auto& [output, reason] : import_.left_out)
    lines.push_back("output '" + output + "' is left out: " + reason + " cannot be imported");
  return lines;
}

std::string OnnxOrigin::nothing_trainable(std::size_t /*parameters*/) const {
  const std::string frozen = frozen_names(import_.classification);
  return "has no weight that the import takes for trainable.\nmodel.unfreeze: [globs] names "
         "tensors to train" +
         (frozen.empty() ? "" : ", which may be: " + frozen) +
         "; docs/onnx.md says which are weights by themselves";
}

void OnnxOrigin::check_gradients(std::span<const std::string> frozen) const {
  std::vector<std::string> outputs;
  if (import_.output) outputs.push_back(*import_.output);
  const onnx::GradientPaths paths = onnx::find_gradient_paths(
      *import_.model, import_.classification, import_.translation, outputs);
  onnx::check_gradient_paths(paths, frozen);
}

std::string OnnxOrigin::argument_of(const std::string& name) const {
  for (const auto& [input, argument] : import_.translation.arguments) {
    if (input == name) return argument;
  }
  return name;
}

std::optional<LayoutMismatch> OnnxOrigin::input_mismatch(const FedInput& input) const {
  const auto& arguments = import_.translation.arguments;
  const std::vector<onnx::ValueInfo>& declared = import_.model->graph.inputs;
  for (std::size_t i = 0; i < declared.size() && i < arguments.size(); ++i) {
    const bool is_named = input.name == arguments[i].first || input.name == arguments[i].second;
    if (input.name.empty() ? i != input.position : !is_named) continue;
    return from_onnx(onnx::input_mismatch(declared[i], input.field, input.batch,
                                          onnx::export_advice(*import_.file)));
  }
  return std::nullopt;
}

std::optional<LayoutMismatch> OnnxOrigin::output_mismatch(
    std::optional<std::int64_t> class_dim) const {
  for (const onnx::ValueInfo& output : import_.model->graph.outputs) {
    if (output.name != import_.output) continue;
    return from_onnx(onnx::output_mismatch(output, class_dim, onnx::export_advice(*import_.file)));
  }
  return std::nullopt;
}

std::string OnnxOrigin::batch_advice(std::int64_t samples) const {
  const onnx::ExportAdvice& advice = onnx::export_advice(*import_.file);
  for (const onnx::ValueInfo& input : import_.file->graph.inputs) {
    if (!input.shape || input.shape->empty()) continue;
    if (std::string text = advice_for(input, samples, advice); !text.empty()) return text;
  }
  // An input's batch may be free although nodes still reshape to the batch of the export, so
  // outputs are checked, too. An output of one dimension may be a loss.
  for (const onnx::ValueInfo& output : import_.model->graph.outputs) {
    if (!output.shape || output.shape->size() < 2 || output.name != import_.output) continue;
    return advice_for(output, samples, advice);
  }
  return "";
}

std::optional<std::int64_t> OnnxOrigin::fixed_batch() const {
  std::optional<std::int64_t> samples;
  for (const onnx::ValueInfo& input : import_.file->graph.inputs) {
    if (!input.shape || input.shape->empty()) continue;
    if (const auto fixed = input.shape->front().value) samples = *fixed;
  }
  return samples;
}

std::optional<ProbabilityOutput> OnnxOrigin::probabilities() const {
  if (!import_.probabilities) return std::nullopt;
  return ProbabilityOutput{.name = *import_.output,
                           .comes_from = import_.probabilities->node,
                           .changed_by = import_.probabilities->changed_by,
                           .has_logits = import_.translation.module.may_give_logits};
}

// If the module has only one output, it has no name there; and an index in the file may differ from
// the one in the module.
std::optional<std::string> output_in_module(const OnnxImport& import,
                                            const std::optional<std::string>& choice) {
  if (!import.output) return choice;
  return import.translation.outputs.size() == 1 ? std::nullopt : import.output;
}

}  // namespace

std::string data_in_onnx(const std::filesystem::path& path) {
  try {
    return text_in_metadata(onnx::read_model(path).metadata, kDataInFile);
  } catch (const UserError&) {
    return "";
  }
}

OpenedModel open_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  OnnxImport import = import_onnx(path, options);
  OpenedModel opened{
      .module = import.module,
      .origin = nullptr,
      .output = output_in_module(import, options.output),
      .logits_switch = import.translation.module.may_give_logits ? onnx::kGivesLogits : ""};
  opened.origin = std::make_shared<const OnnxOrigin>(std::move(import));
  return opened;
}

}  // namespace decent
