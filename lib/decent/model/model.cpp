#include "decent/model/model.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <set>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/autocast.h"
#include "decent/model/code_hash.h"
#include "decent/model/data_advice.h"
#include "decent/model/device_advice.h"
#include "decent/model/forward_graph.h"
#include "decent/model/inspect.h"
#include "decent/model/onnx/import.h"
#include "decent/model/output.h"
#include "decent/model/reason.h"

namespace decent {
namespace {

// Arguments of forward without self.
std::vector<c10::Argument> arguments_of(const torch::jit::Module& module) {
  const auto& all = module.get_method("forward").function().getSchema().arguments();
  return {all.begin() + 1, all.end()};
}

// For convolutions in two and in three dimensions.
std::optional<at::MemoryFormat> channels_last_of(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) return std::nullopt;
  if (tensor.dim() == 4) return at::MemoryFormat::ChannelsLast;
  if (tensor.dim() == 5) return at::MemoryFormat::ChannelsLast3d;
  return std::nullopt;
}

std::string quoted_path(const std::filesystem::path& path) {
  return "model '" + path.string() + "'";
}

// Where an .onnx file's own shapes tell why forward failed, they say more than the operator did.
void check_layout(const OnnxImport& import, std::span<const ForwardInput> inputs,
                  std::span<const at::Tensor> tensors, const std::string& reason) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto found =
        input_mismatch(import, {inputs[i].argument, i, inputs[i].field, tensors[i].sizes().vec()});
    if (!found) continue;
    throw UserError(quoted_path(import.file->path) + " does not fit the data: " + found->text +
                    ".\n" + found->way_out + ".\nIt failed with: " + reason);
  }
}

// While it lives, forward gives logits.
class LogitsMode {
 public:
  explicit LogitsMode(torch::jit::Module& module) : module_(module) {
    module_.setattr(onnx::kGivesLogits, true);
  }
  LogitsMode(const LogitsMode&) = delete;
  LogitsMode& operator=(const LogitsMode&) = delete;
  ~LogitsMode() { module_.setattr(onnx::kGivesLogits, false); }

 private:
  torch::jit::Module& module_;
};

}  // namespace

void use_plain_executor() { torch::jit::setGraphExecutorOptimize(false); }

void Model::load() {
  check_is_torchscript(path_);
  try {
    module_ = torch::jit::load(path_.string(), at::kCPU);
  } catch (const std::exception& error) {
    throw UserError(quoted_path(path_) + " cannot be loaded: " + reason_of(error));
  }
  if (!module_.find_method("forward"))
    throw UserError(quoted_path(path_) + " has no forward method");
}

void Model::open(const ImportOptions& options) {
  output_ = options.output;
  if (path_.extension() != ".onnx") return load();
  onnx_ = std::make_shared<const OnnxImport>(import_onnx(path_, options));
  module_ = onnx_->module;
  // The only output has no name in the module, and an index may be another one there.
  const bool is_only = onnx_->translation.outputs.size() == 1;
  if (onnx_->output) output_ = is_only ? std::nullopt : onnx_->output;
  gives_logits_ = onnx_->translation.module.may_give_logits;
}

Model::Model(const std::filesystem::path& path, const ImportOptions& options)
    : path_(path) {
  open(options);
  collect_tensors();
  make_buffers_writable();
  find_buffer_slots();
  check_trainable();
  const auto forward = forward_graph(module_);
  fixed_mode_operators_ = find_fixed_mode_operators(*forward);
  reads_data_of_tensors_ = decent::reads_data_of_tensors(*forward);
  ends_in_sigmoid_ = decent::ends_in_sigmoid(*forward);
  constants_ = find_tensor_constants(*forward);
  code_hash_ = decent::code_hash(module_);
}

void Model::collect_tensors() {
  std::set<const void*> seen;
  const auto collect = [&](const auto& named, NamedTensors& unique) {
    for (const auto& entry : named) {
      if (!entry.value.defined()) continue;
      state_.emplace_back(entry.name, entry.value);
      if (seen.insert(entry.value.unsafeGetTensorImpl()).second)
        unique.emplace_back(entry.name, entry.value);
    }
  };
  collect(module_.named_parameters(), parameters_);
  collect(module_.named_buffers(), buffers_);
}

// A buffer made by expand() repeats the same memory, so that nothing can be written to it.
void Model::make_buffers_writable() {
  const at::NoGradGuard no_grad;
  for (auto& [name, buffer] : buffers_) {
    if (buffer.layout() != at::kStrided || buffer.is_non_overlapping_and_dense()) continue;
    if (buffer.storage().use_count() > 1) {
      throw UserError(quoted_path(path_) + ": buffer '" + name +
                      "' repeats elements or skips some of memory that another tensor uses too. "
                      "Export it as a tensor of its own (buffer.clone())");
    }
    buffer.set_data(buffer.contiguous());
  }
}

void Model::find_buffer_slots() {
  for (const torch::jit::NameModule& part : module_.named_modules()) {
    const torch::jit::ObjectPtr owner = part.value._ivalue();
    const auto type = owner->type();
    for (std::size_t slot = 0; slot < type->numAttributes(); ++slot) {
      const bool is_tensor = type->getAttribute(slot)->isSubtypeOf(*c10::TensorType::get());
      if (!is_tensor || type->is_parameter(slot)) continue;
      const at::Tensor buffer = owner->getSlot(slot).toTensor();
      const std::string prefix = part.name.empty() ? "" : part.name + ".";
      if (buffer.defined()) {
        buffer_slots_.push_back({owner, slot, prefix + type->getAttributeName(slot), buffer});
      }
    }
  }
}

void Model::settle_buffers() {
  const at::NoGradGuard no_grad;
  // All values are taken before any is written: a buffer's new tensor may be another buffer.
  std::vector<std::pair<const BufferSlot*, at::Tensor>> moved;
  for (const BufferSlot& place : buffer_slots_) {
    const at::Tensor current = place.owner->getSlot(place.slot).toTensor();
    if (current.is_same(place.buffer)) continue;
    if (!current.defined() || current.sizes() != place.buffer.sizes() ||
        current.scalar_type() != place.buffer.scalar_type()) {
      throw UserError(quoted_path(path_) + ": forward changes the shape or type of its buffer '" +
                      place.name + "' from " + dtype_text(place.buffer.scalar_type()) +
                      shape_text(place.buffer.sizes()) + ", so that workers cannot average it");
    }
    moved.emplace_back(&place, current.clone());
  }
  for (const auto& [place, value] : moved) {
    place->buffer.copy_(value);
    place->owner->setSlot(place->slot, place->buffer);
  }
}

void Model::check_trainable() const {
  if (!module_.hasattr("training")) {
    throw UserError(
        quoted_path(path_) +
        " was frozen for inference (torch.jit.freeze or optimize_for_inference): its parameters "
        "became "
        "constants.\nExport it before freezing: torch.jit.script(model).save(\"model.pt\")");
  }
  const bool trainable = std::any_of(parameters_.begin(), parameters_.end(), [](const auto& entry) {
    return entry.second.requires_grad();
  });
  if (trainable) return;
  if (onnx_) {
    const std::string frozen = frozen_names(*onnx_);
    throw UserError(quoted_path(path_) +
                    " has no weight that the import takes for trainable.\nmodel.unfreeze: [globs] "
                    "names tensors to train" +
                    (frozen.empty() ? "" : ", which may be: " + frozen) +
                    "; docs/onnx.md says which are weights by themselves");
  }
  throw UserError(quoted_path(path_) + " has no trainable parameter" +
                  (parameters_.empty()
                       ? "."
                       : ": requires_grad is False for " +
                             (parameters_.size() == 1
                                  ? "its only one."
                                  : "all " + std::to_string(parameters_.size()) + " of them.")) +
                  "\nIn Python, model.requires_grad_(True) before "
                  "torch.jit.script(model).save(\"model.pt\") makes "
                  "them trainable.");
}

std::string Model::signature() const {
  std::vector<std::string> parts;
  for (const c10::Argument& argument : arguments_of(module_)) {
    parts.push_back(argument.name() + ": " + argument.type()->annotation_str());
  }
  return "forward(" + join(parts) + ")";
}

void Model::check_signature(std::span<const ForwardInput> inputs) const {
  const std::vector<c10::Argument> arguments = arguments_of(module_);
  const std::string about = quoted_path(path_) + " has " + signature();
  std::vector<std::string> names;
  for (const c10::Argument& argument : arguments) names.push_back(argument.name());
  if (inputs.size() > arguments.size()) {
    throw UserError(about + ": model.inputs gives it " + counted(std::ssize(inputs), "input"));
  }
  std::set<std::string> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name =
        inputs[i].argument.empty() ? names[i] : argument_of(inputs[i].argument);
    const auto position = std::find(names.begin(), names.end(), name);
    if (position == names.end()) {
      const auto nearest = nearest_name(name, names);
      throw UserError(about + ": it has no argument '" + name + "'" +
                      (nearest ? "; did you mean '" + *nearest + "'?" : ""));
    }
    const c10::TypePtr& type = arguments[static_cast<std::size_t>(position - names.begin())].type();
    if (!c10::TensorType::get()->isSubtypeOf(*type)) {
      throw UserError(about + ": '" + name + "' is not a tensor, so data cannot feed it");
    }
    given.insert(name);
  }
  for (const c10::Argument& argument : arguments) {
    if (given.count(argument.name()) == 0 && !argument.default_value()) {
      throw UserError(about + ": nothing in model.inputs feeds '" + argument.name() + "'");
    }
  }
}

std::string Model::argument_of(const std::string& name) const {
  if (!onnx_) return name;
  for (const auto& [input, argument] : onnx_->translation.arguments) {
    if (input == name) return argument;
  }
  return name;
}

void Model::use_channels_last() {
  const at::NoGradGuard no_grad;
  channels_last_ = true;
  for (auto& [name, parameter] : parameters_) {
    const auto format = channels_last_of(parameter);
    if (format) parameter.set_data(parameter.contiguous(*format));
  }
}

void Model::move_to(at::Device device) {
  const at::NoGradGuard no_grad;
  const auto move = [&](at::Tensor tensor) {
    if (tensor.device() != device) tensor.set_data(tensor.to(device));
  };
  for (const auto& [name, parameter] : parameters_) move(parameter);
  for (const auto& [name, buffer] : buffers_) move(buffer);
  for (const at::Tensor& constant : constants_) move(constant);
  device_ = device;
}

c10::IValue Model::run(std::span<const ForwardInput> inputs,
                                  std::span<const at::Tensor> tensors) {
  std::vector<c10::IValue> positional;
  torch::jit::Kwargs named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto format = channels_last_ ? channels_last_of(tensors[i]) : std::nullopt;
    const at::Tensor tensor = format ? tensors[i].contiguous(*format) : tensors[i];
    if (inputs[i].argument.empty()) {
      positional.emplace_back(tensor);
    } else {
      named.emplace(argument_of(inputs[i].argument), tensor);
    }
  }
  std::optional<Autocast> autocast;
  if (autocast_) autocast.emplace(device_.type(), *autocast_);
  std::optional<LogitsMode> logits;
  if (gives_logits_) logits.emplace(module_);
  return module_.forward(std::move(positional), named);
}

void Model::refuse_batch(const std::string& reason, std::span<const ForwardInput> inputs,
                                    std::span<const at::Tensor> tensors) const {
  if (onnx_) check_layout(*onnx_, inputs, tensors, reason);
  std::vector<std::string> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    shapes.push_back(inputs[i].field + " " + dtype_text(tensors[i].scalar_type()) +
                     shape_text(tensors[i].sizes()));
  }
  const std::string about = quoted_path(path_) + " fails on a batch of " + join(shapes) + ": ";
  if (const auto wish = gpu_wish(reason, module_, device_)) throw UserError(about + *wish);
  throw UserError(about + reason + device_advice(reason, module_, device_) +
                  data_advice(reason, inputs, tensors, parameters_) +
                  (onnx_ && !tensors.empty() ? batch_advice(*onnx_, tensors[0].size(0)) : ""));
}

at::Tensor Model::forward(std::span<const ForwardInput> inputs,
                                     std::span<const at::Tensor> tensors) {
  c10::IValue output;
  try {
    output = run(inputs, tensors);
  } catch (const std::exception& error) {
    refuse_batch(reason_of(error), inputs, tensors);
  }
  try {
    const at::Tensor chosen = select_output(output, output_);
    // Losses are not for low precision, and autocast would cast there, too.
    return autocast_ && chosen.scalar_type() == *autocast_ ? chosen.to(at::kFloat) : chosen;
  } catch (const UserError& error) {
    throw UserError(quoted_path(path_) + ": " + error.what());
  }
}

}  // namespace decent
