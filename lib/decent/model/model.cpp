#include "decent/model/model.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "decent/core/error.h"
#include "decent/core/gpu_errors.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/advice.h"
#include "decent/model/constants.h"
#include "decent/model/forward_graph.h"
#include "decent/model/inspect.h"
#include "decent/model/precision.h"
#include "decent/model/reason.h"
#include "decent/model/weight_use.h"

namespace decent {
namespace {

/// A module's tensors into which forward writes.
struct WrittenAttributes {
  std::set<std::string> paths;  // "layer1.weight"; buffers among them
  bool others = false;          // forward writes into tensors that cannot be told: they may be any
};

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

/// Follows values back to the attributes that they are, or of which they are views.
class Attributes {
 public:
  explicit Attributes(const Graph& forward) : forward_(forward) {}

  void add(const Value* value) {
    left_.push_back(value);
    while (!left_.empty()) {
      const Value* next = left_.back();
      left_.pop_back();
      if (seen_.insert(next).second) follow(next);
    }
  }
  WrittenAttributes take() { return std::move(found_); }

 private:
  void follow(const Value* value) {
    const Node* node = value->node();
    if (node->kind() == c10::prim::Constant) return;
    if (node->kind() == c10::prim::GetAttr) return add_attribute(node);
    if (node->kind() == c10::prim::Param) return follow_input(node);
    if (!node->blocks().empty()) return follow_blocks(node);
    if (const c10::FunctionSchema* schema = node->maybeSchema()) return follow_call(value, *schema);
    // Calls that could not be expanded, and results of torch.jit.fork.
    const bool is_call = node->kind() == c10::prim::CallMethod ||
                         node->kind() == c10::prim::CallFunction ||
                         node->hasAttribute(c10::attr::Subgraph);
    found_.others |= is_call;
    if (!is_call) push(node->inputs());  // e.g. of lists and tuples
  }

  void add_attribute(const Node* node) {
    if (const auto path = attribute_path(node, forward_)) {
      found_.paths.insert(*path);
    } else {
      found_.others = true;
    }
  }

  // An argument of forward is no attribute; a value that a loop carries may be one.
  void follow_input(const Node* parameters) {
    const Node* owner = parameters->owningBlock()->owningNode();
    if (owner != nullptr) follow_blocks(owner);
  }

  void follow_blocks(const Node* node) {
    if (node->kind() != c10::prim::If) push(node->inputs());
    for (const Block* block : node->blocks()) push(block->outputs());
  }

  // A result without an alias mark has memory of its own.
  void follow_call(const Value* value, const c10::FunctionSchema& schema) {
    const auto& results = schema.returns();
    if (value->offset() < results.size() && results[value->offset()].alias_info() == nullptr)
      return;
    push(value->node()->inputs());
  }

  // Follows only values that can be or contain tensors.
  template <typename Values>
  void push(const Values& values) {
    for (const Value* each : values) {
      const bool is_plain = each->type()->isSubtypeOf(*c10::NumberType::get()) ||
                            each->type()->isSubtypeOf(*c10::BoolType::get()) ||
                            each->type()->isSubtypeOf(*c10::StringType::get());
      if (!is_plain) left_.push_back(each);
    }
  }

  const Graph& forward_;
  WrittenAttributes found_;
  std::vector<const Value*> left_;
  std::set<const Value*> seen_;
};

// The attributes into which operators of a forward_graph() write in place, directly or through
// views. An operator's schema says whether it writes.
WrittenAttributes find_written_attributes(const Graph& forward) {
  Attributes attributes(forward);
  visit_nodes(forward, [&](const Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr) return;
    const std::size_t count = std::min(schema->arguments().size(), node->inputs().size());
    for (std::size_t i = 0; i < count; ++i) {
      const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
      if (alias != nullptr && alias->isWrite()) attributes.add(node->inputs()[i]);
    }
  });
  return attributes.take();
}

// Names (empty if there are none) and values.
using Outputs = std::vector<std::pair<std::string, c10::IValue>>;

Outputs outputs_of(const c10::IValue& result) {
  Outputs outputs;
  if (result.isTensor()) {
    outputs.emplace_back("", result);
  } else if (result.isTuple()) {
    const auto type = result.type()->cast<c10::TupleType>();
    const auto& elements = result.toTupleRef().elements();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const bool named = type && type->schema() != nullptr;
      outputs.emplace_back(named ? type->schema()->arguments()[i].name() : "", elements[i]);
    }
  } else if (result.isTensorList()) {
    for (const at::Tensor& tensor : result.toTensorVector()) outputs.emplace_back("", tensor);
  } else if (result.isGenericDict()) {
    for (const auto& entry : result.toGenericDict()) {
      outputs.emplace_back(entry.key().isString() ? entry.key().toStringRef() : "", entry.value());
    }
  } else {
    throw UserError("forward returns " + result.type()->repr_str() +
                    ": expected a tensor, or a tuple, list or dictionary of tensors");
  }
  return outputs;
}

std::string list_of(const Outputs& outputs) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = outputs[i].first;
    texts.push_back(std::to_string(i) + (name.empty() ? "" : " ('" + name + "')"));
  }
  constexpr std::size_t kMostShown = 20;
  return some_of(texts, kMostShown);
}

std::optional<std::size_t> find_output(const Outputs& outputs, const std::string& choice) {
  const auto named = std::find_if(outputs.begin(), outputs.end(),
                                  [&](const auto& output) { return output.first == choice; });
  if (named != outputs.end()) return named - outputs.begin();
  std::size_t index = 0;
  const char* end = choice.data() + choice.size();
  const auto [stop, failed] = std::from_chars(choice.data(), end, index);
  if (failed != std::errc() || stop != end || index >= outputs.size()) return std::nullopt;
  return index;
}

// Picks `choice`, a name or an index (from 0), from `result`: a tensor, a tuple (named or not), a
// list or a dictionary of tensors. Without a choice, takes the only tensor. Throws UserError that
// lists the outputs.
at::Tensor select_output(const c10::IValue& result, const std::optional<std::string>& choice) {
  const Outputs outputs = outputs_of(result);
  if (!choice && outputs.size() != 1) {
    throw UserError("forward returns " + std::to_string(outputs.size()) +
                    " outputs; model.output chooses one: " + list_of(outputs));
  }
  const auto index = choice ? find_output(outputs, *choice) : std::optional<std::size_t>(0);
  if (!index) {
    throw UserError("model.output: there is no output '" + *choice + "'; forward returns " +
                    list_of(outputs));
  }
  const c10::IValue& value = outputs[*index].second;
  if (!value.isTensor()) {
    throw UserError("model.output: output " + std::to_string(*index) + " is " +
                    value.type()->repr_str() + ", not a tensor");
  }
  return value.toTensor();
}

// The arguments of forward without self.
std::vector<c10::Argument> arguments_of(const torch::jit::Module& module) {
  const auto& all = module.get_method("forward").function().getSchema().arguments();
  return {all.begin() + 1, all.end()};
}

// The order for convolutions in two and in three dimensions.
std::optional<at::MemoryFormat> channels_last_of(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) return std::nullopt;
  if (tensor.dim() == 4) return at::MemoryFormat::ChannelsLast;
  if (tensor.dim() == 5) return at::MemoryFormat::ChannelsLast3d;
  return std::nullopt;
}

// Makes forward give logits while it lives.
class LogitsMode {
 public:
  LogitsMode(torch::jit::Module& module, const std::string& attribute)
      : module_(module), attribute_(attribute) {
    module_.setattr(attribute_, true);
  }
  LogitsMode(const LogitsMode&) = delete;
  LogitsMode& operator=(const LogitsMode&) = delete;
  ~LogitsMode() { module_.setattr(attribute_, false); }

 private:
  torch::jit::Module& module_;
  const std::string& attribute_;
};

}  // namespace

void use_plain_executor() { torch::jit::setGraphExecutorOptimize(false); }

std::string model_in_quotes(const std::filesystem::path& path) {
  return "model '" + path.string() + "'";
}

Model::Model(std::filesystem::path path, OpenedModel opened)
    : path_(std::move(path)),
      module_(std::move(opened.module)),
      origin_(std::move(opened.origin)),
      output_(std::move(opened.output)),
      logits_switch_(std::move(opened.logits_switch)),
      gives_logits_(!logits_switch_.empty()) {
  collect_tensors();
  make_buffers_writable();
  find_buffer_slots();
  const auto forward = forward_graph(module_);
  fixed_mode_operators_ = find_fixed_mode_operators(*forward);
  find_written_parameters(*forward);
  reads_data_of_tensors_ = decent::reads_data_of_tensors(*forward);
  ends_in_sigmoid_ = decent::ends_in_sigmoid(*forward);
  constants_ = constants_to_move(*forward);
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

void Model::find_written_parameters(const torch::jit::Graph& forward) {
  const WrittenAttributes written = find_written_attributes(forward);
  std::set<const void*> tensors;
  for (const auto& [name, tensor] : state_)
    if (written.paths.count(name) != 0) tensors.insert(tensor.unsafeGetTensorImpl());
  for (const auto& parameter : parameters_) {
    const bool is_written = tensors.count(parameter.second.unsafeGetTensorImpl()) != 0;
    if (written.others || is_written) written_parameters_.push_back(parameter);
  }
}

// Copies buffers made by expand(), which repeat the same memory and so cannot be written to.
void Model::make_buffers_writable() {
  const at::NoGradGuard no_grad;
  for (auto& [name, buffer] : buffers_) {
    if (buffer.layout() != at::kStrided || buffer.is_non_overlapping_and_dense()) continue;
    if (buffer.storage().use_count() > 1) {
      throw UserError(model_in_quotes(path_) + ": buffer '" + name +
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
      throw UserError(model_in_quotes(path_) +
                      ": forward changes the shape or type of its buffer '" + place.name +
                      "' from " + dtype_text(place.buffer.scalar_type()) +
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
  const bool trainable = std::any_of(parameters_.begin(), parameters_.end(), [](const auto& entry) {
    return entry.second.requires_grad();
  });
  if (trainable) return;
  throw UserError(model_in_quotes(path_) + " " + origin_->nothing_trainable(parameters_.size()));
}

namespace {

// Whether this is one of PyTorch's batch norms, or an instance norm with statistics, which looks
// the same.
bool has_statistics(const torch::jit::Module& module) {
  return module.hasattr("running_mean") && module.attr("running_mean").isTensor() &&
         module.hasattr("training");
}

bool trains(const torch::jit::Module& module) {
  for (const at::Tensor& parameter : module.parameters(/*recurse=*/false))
    if (parameter.requires_grad()) return true;
  return false;
}

}  // namespace

std::vector<std::string> Model::freeze_statistics() {
  for (const std::string& each : fixed_mode_operators_) {
    if (each.find("batch_norm") == std::string::npos) continue;
    throw UserError(
        "model.freeze_statistics: the file holds the mode of batch norm as a constant (" + each +
        "); torch.jit.script keeps it open");
  }
  const std::set<std::string> with_mode = modules_whose_mode_is_read(*forward_graph(module_));
  std::vector<std::string> names;
  for (const auto& [name, module] : module_.named_modules()) {
    const bool has_mode = module.find_method("forward") || with_mode.count(name) != 0;
    if (!has_statistics(module) || !has_mode || trains(module)) continue;
    names.push_back(name);
    in_eval_mode_.push_back(module);
  }
  if (!names.empty()) return names;
  throw UserError("model.freeze_statistics: " + model_in_quotes(path_) +
                  " has no batch norm whose parameters are frozen (model.freeze) and which can be "
                  "put into eval "
                  "mode by itself");
}

Model::NamedTensors Model::all_parameters() const {
  NamedTensors all = parameters_;
  all.insert(all.end(), base_.begin(), base_.end());
  return all;
}

void Model::add_adapters(const NamedTensors& weights, const NamedTensors& trained,
                         const AdapterOptions& options) {
  const auto is_in = [](const NamedTensors& tensors, const at::Tensor& tensor) {
    return std::ranges::any_of(tensors,
                               [&](const auto& each) { return each.second.is_same(tensor); });
  };
  for (const auto& [name, parameter] : written_parameters_) {
    if (is_in(trained, parameter)) continue;
    throw UserError(
        model_in_quotes(path_) + ": forward writes into parameter '" + name +
        "', which cannot be a part of the base of adapters; train it (model.lora.train)");
  }
  const auto graph = forward_graph(module_);
  for (const auto& [name, weight] : weights) {
    if (!has_sparse_gradient(*graph, name)) continue;
    throw UserError("the gradient of parameter '" + name +
                    "' is sparse, so that it cannot have an adapter: export the model with dense "
                    "gradients (Embedding(.., sparse=False))");
  }
  adapters_ = std::make_unique<Adapters>(module_, weights, options);
  NamedTensors all = std::move(parameters_);
  parameters_.clear();
  auto adapter = adapters_->all().begin();
  for (auto& [name, parameter] : all) {
    const bool is_trained = is_in(trained, parameter);
    if (parameter.requires_grad() && !is_trained) trainable_base_.push_back(parameter);
    parameter.requires_grad_(is_trained);
    (parameter.requires_grad() ? parameters_ : base_).emplace_back(name, parameter);
    if (!is_in(weights, parameter)) continue;
    parameters_.emplace_back(lora_a_name(name), adapter->a);
    parameters_.emplace_back(lora_b_name(name), adapter->b);
    ++adapter;
  }
}

void Model::train() {
  module_.train();
  for (torch::jit::Module& module : in_eval_mode_) module.eval();
}

std::string Model::signature() const {
  std::vector<std::string> parts;
  for (const c10::Argument& argument : arguments_of(module_)) {
    parts.push_back(argument.name() + ": " + argument.type()->annotation_str());
  }
  return "forward(" + join(parts) + ")";
}

std::size_t Model::argument_of(std::span<const ForwardInput> inputs, std::size_t number) const {
  if (inputs[number].argument.empty()) return number;
  const std::string name = origin_->argument_of(inputs[number].argument);
  const std::vector<c10::Argument> arguments = arguments_of(module_);
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [&](const auto& argument) { return argument.name() == name; });
  return static_cast<std::size_t>(found - arguments.begin());
}

void Model::check_signature(std::span<const ForwardInput> inputs) const {
  const std::vector<c10::Argument> arguments = arguments_of(module_);
  const std::string about = model_in_quotes(path_) + " has " + signature();
  std::vector<std::string> names;
  for (const c10::Argument& argument : arguments) names.push_back(argument.name());
  if (inputs.size() > arguments.size()) {
    throw UserError(about + ": model.inputs gives it " + counted(std::ssize(inputs), "input"));
  }
  std::set<std::string> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t place = argument_of(inputs, i);
    if (place == names.size()) {
      const std::string name = origin_->argument_of(inputs[i].argument);
      const auto nearest = nearest_name(name, names);
      throw UserError(about + ": it has no argument '" + name + "'" +
                      (nearest ? "; did you mean '" + *nearest + "'?" : ""));
    }
    if (!c10::TensorType::get()->isSubtypeOf(*arguments[place].type())) {
      throw UserError(about + ": '" + names[place] + "' is not a tensor, so data cannot feed it");
    }
    given.insert(names[place]);
  }
  for (const c10::Argument& argument : arguments) {
    if (given.count(argument.name()) == 0 && !argument.default_value()) {
      throw UserError(about + ": nothing in model.inputs feeds '" + argument.name() + "'");
    }
  }
}

void Model::use_channels_last() {
  const at::NoGradGuard no_grad;
  channels_last_ = true;
  for (const auto& [name, parameter] : all_parameters()) {
    const auto format = channels_last_of(parameter);
    if (format) parameter.set_data(parameter.contiguous(*format));
  }
}

void Model::move_to(at::Device device) {
  const at::NoGradGuard no_grad;
  const auto move = [&](const at::Tensor& tensor) {
    if (tensor.device() != device) tensor.set_data(tensor.to(device));
  };
  for (const auto* tensors : {&parameters_, &base_, &buffers_})
    for (const auto& [name, tensor] : *tensors) move(tensor);
  for (const at::Tensor& constant : constants_) move(constant);
  device_ = device;
}

c10::IValue Model::run(std::span<const ForwardInput> inputs, std::span<const at::Tensor> tensors) {
  std::vector<c10::IValue> positional;
  torch::jit::Kwargs named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto format = channels_last_ ? channels_last_of(tensors[i]) : std::nullopt;
    const at::Tensor tensor = format ? tensors[i].contiguous(*format) : tensors[i];
    if (inputs[i].argument.empty()) {
      positional.emplace_back(tensor);
    } else {
      named.emplace(origin_->argument_of(inputs[i].argument), tensor);
    }
  }
  const AppliedAdapters applied(adapters_.get());
  std::optional<Autocast> autocast;
  if (autocast_) autocast.emplace(device_.type(), *autocast_);
  std::optional<LogitsMode> logits;
  if (gives_logits_) logits.emplace(module_, logits_switch_);
  return module_.forward(std::move(positional), named);
}

void Model::refuse_layout(const std::string& reason, std::span<const ForwardInput> inputs,
                          std::span<const at::Tensor> tensors) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto found =
        origin_->input_mismatch({inputs[i].argument, i, inputs[i].field, tensors[i].sizes().vec()});
    if (!found) continue;
    throw UserError(model_in_quotes(path_) + " does not fit the data: " + found->text + ".\n" +
                    found->way_out + ".\nIt failed with: " + reason);
  }
}

void Model::refuse_batch(const std::string& reason, std::span<const ForwardInput> inputs,
                         std::span<const at::Tensor> tensors) const {
  refuse_layout(reason, inputs, tensors);  // says more than the operator's error
  std::vector<std::string> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    shapes.push_back(inputs[i].field + " " + dtype_text(tensors[i].scalar_type()) +
                     shape_text(tensors[i].sizes()));
  }
  const std::string about = model_in_quotes(path_) + " fails on a batch of " + join(shapes) + ": ";
  const bool has_samples = !tensors.empty() && tensors[0].dim() > 0;
  if (const auto known = gpu_error_of(reason)) known->raise(about + reason);
  if (const auto wish = gpu_wish(reason, module_, device_)) throw UserError(about + *wish);
  throw UserError(about + reason + device_advice(reason, module_, device_) +
                  data_advice(reason, inputs, tensors, all_parameters()) +
                  (has_samples ? origin_->batch_advice(tensors[0].size(0)) : ""));
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
    // Losses must not run in low precision, where autocast would cast, too.
    return autocast_ && chosen.scalar_type() == *autocast_ ? chosen.to(at::kFloat) : chosen;
  } catch (const UserError& error) {
    throw UserError(model_in_quotes(path_) + ": " + error.what());
  }
}

}  // namespace decent
