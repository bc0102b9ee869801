#include "decent/model/peft.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

#include "decent/core/file.h"
#include "decent/core/text.h"
#include "decent/model/forward_graph.h"
#include "decent/model/tensor_file.h"
#include "decent/model/weight_use.h"

namespace decent {
namespace {

constexpr std::string_view kWeight = ".weight";
const std::string kPrefix = "base_model.model.";

/// Why a model's adapters are none of PEFT's.
struct NotForPeft : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "layer1" of "layer1.bias"; "" for a parameter of the model itself.
std::string module_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

std::string adapted_module(const Model& model, const Adapter& adapter) {
  const auto names = std::ranges::count_if(
      model.state(), [&](const auto& each) { return each.second.is_same(adapter.weight); });
  if (names > 1) throw NotForPeft("several modules share " + in_quotes(adapter.name));
  if (!adapter.name.ends_with(kWeight) || module_of(adapter.name).empty())
    throw NotForPeft(in_quotes(adapter.name) + " is not named as the weight of a module");
  const std::string module = module_of(adapter.name);
  const std::string beside = module_of(module).empty() ? "" : module_of(module) + ".";
  const bool is_of_attention = std::ranges::any_of(model.state(), [&](const auto& each) {
    return each.first == beside + "in_proj_weight" && module == beside + "out_proj";
  });
  if (is_of_attention) {
    throw NotForPeft(in_quotes(adapter.name) +
                     " is read by torch.nn.MultiheadAttention, not by its own module");
  }
  return module;
}

// PEFT takes every module whose name ends with one of modules_to_save.
void check_endings(const Model& model, const std::set<std::string>& whole) {
  std::set<std::string> modules;
  for (const auto& [name, tensor] : model.state())
    for (std::string each = module_of(name); !each.empty(); each = module_of(each))
      modules.insert(each);
  for (const auto& each : model.module().named_modules()) modules.insert(each.name);
  for (const std::string& saved : whole) {
    for (const std::string& other : modules) {
      if (other.ends_with(saved) && !whole.contains(other))
        throw NotForPeft("PEFT would take " + in_quotes(other) + " for the trained module " +
                         in_quotes(saved));
    }
  }
}

// PEFT adapts a convolution by two convolutions, the second one with a kernel of one element.
Model::NamedTensors tensors_of_convolution(const Adapter& adapter, const std::string& place) {
  std::vector<std::int64_t> kernel = adapter.weight.sizes().vec();
  kernel[0] = adapter.a.size(0);
  std::vector<std::int64_t> point(kernel.size(), 1);
  point[0] = adapter.b.size(0);
  point[1] = adapter.b.size(1);
  return {{place + ".lora_A.weight", adapter.a.view(kernel)},
          {place + ".lora_B.weight", adapter.b.view(point)}};
}

// PEFT's matrices for W + s B A. Of a weight [in, out] and of an embedding they are those of the
// transposed weight.
Model::NamedTensors tensors_of(const Adapter& adapter, WeightUse use, const std::string& module) {
  const std::string place = kPrefix + module;
  if (use == WeightUse::other) {
    throw NotForPeft(in_quotes(adapter.name) +
                     " is not the weight of a linear layer, a convolution without groups or an "
                     "embedding");
  }
  if (use == WeightUse::convolution) return tensors_of_convolution(adapter, place);
  const bool is_embedding = use == WeightUse::embedding;
  const bool is_linear = use == WeightUse::linear;
  return {{place + (is_embedding ? ".lora_embedding_A" : ".lora_A.weight"),
           is_linear ? adapter.a : adapter.b.t()},
          {place + (is_embedding ? ".lora_embedding_B" : ".lora_B.weight"),
           is_linear ? adapter.b : adapter.a.t()}};
}

// Modules whose parameters train, or whose statistics do, are saved as a whole.
std::set<std::string> whole_modules(const Model& model, const std::set<std::string>& adapted) {
  std::set<std::string> modules;
  for (const auto& [name, tensor] : model.parameters()) {
    if (is_of_adapter(name)) continue;
    const std::string module = module_of(name);
    if (module.empty()) throw NotForPeft(in_quotes(name) + " trains and belongs to no module");
    if (adapted.contains(module))
      throw NotForPeft(in_quotes(name) + " trains in a module whose weight has an adapter");
    modules.insert(module);
  }
  for (const auto& [name, tensor] : model.buffers())
    if (name.ends_with(".running_mean")) modules.insert(module_of(name));
  return modules;
}

// Of a regular expression that matches these names and no others.
std::string pattern_of(const std::set<std::string>& names) {
  std::string pattern;
  for (const std::string& name : names) {
    if (!pattern.empty()) pattern += "|";
    for (const char c : name) pattern += c == '.' ? std::string("\\.") : std::string(1, c);
  }
  return pattern;
}

void save(Model& model, const std::filesystem::path& folder) {
  const auto forward = forward_graph(model.module());
  const Adapters& adapters = *model.adapters();
  std::set<std::string> adapted;
  Model::NamedTensors tensors;
  for (const Adapter& adapter : adapters.all()) {
    const std::string module = adapted_module(model, adapter);
    adapted.insert(module);
    for (auto& entry : tensors_of(adapter, use_of(*forward, adapter.name), module))
      tensors.push_back(std::move(entry));
  }
  const std::set<std::string> whole = whole_modules(model, adapted);
  check_endings(model, whole);
  for (const auto& [name, tensor] : model.state())
    if (whole.contains(module_of(name))) tensors.emplace_back(kPrefix + name, tensor);
  const std::int64_t rank = adapters.all().front().a.size(0);
  nlohmann::ordered_json config = {
      {"peft_type", "LORA"},
      {"task_type", nullptr},
      {"base_model_name_or_path", nullptr},
      {"inference_mode", true},
      {"r", rank},
      {"lora_alpha", adapters.scale() * static_cast<double>(rank)},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"target_modules", pattern_of(adapted)},
      {"modules_to_save", nullptr},
  };
  if (!whole.empty()) config["modules_to_save"] = whole;
  create_folders(folder);
  save_tensors(tensors, folder / kPeftTensors, {{"format", "pt"}});
  write_file(folder / "adapter_config.json", config.dump(2) + "\n");
}

}  // namespace

std::string save_for_peft(Model& model, const std::filesystem::path& folder) {
  try {
    save(model, folder);
    return "";
  } catch (const NotForPeft& reason) {
    return reason.what();
  }
}

}  // namespace decent
