#include "decent/model/output.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

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

}  // namespace

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

}  // namespace decent
