#include "decent/pt2/report/report_inputs.h"

#include <optional>
#include <span>

#include "decent/core/error.h"
#include "decent/core/quote.h"
#include "decent/core/text.h"
#include "decent/pt2/analyse/declared.h"
#include "decent/pt2/archive/sample_inputs.h"

namespace decent::pt2 {
namespace {

using Examples = std::optional<std::vector<SampleValue>>;

// The shape of an example; examples are in the order of in_spec, as the user's inputs are.
std::string example_text(const Examples& examples, std::size_t place) {
  if (!examples || place >= examples->size()) return "";
  const auto* tensor = std::get_if<decent::StoredTensor>(&(*examples)[place]);
  return tensor == nullptr ? "" : ", exported with " + shape_text(tensor->shape);
}

// Examples that cannot be read become a line, because training does not need them.
Examples examples_of(const ImportFacts& facts, std::vector<std::string>& lines) {
  try {
    return read_sample_inputs(facts.archive, *facts.programs.train);
  } catch (const UserError& error) {
    lines.push_back(std::string("example inputs are not read: ") + error.what());
    return std::nullopt;
  }
}

bool is_user_input(const InputSpec& input) {
  return std::holds_alternative<UserInput>(input) || std::holds_alternative<ConstantInput>(input);
}

}  // namespace

std::vector<std::string> input_lines(const ImportFacts& facts) {
  const ExportedProgram& program = *facts.programs.train;
  std::vector<std::string> lines;
  const Examples examples = examples_of(facts, lines);
  std::size_t place = 0;
  for (const InputSpec& input : program.input_specs) {
    if (!is_user_input(input)) continue;
    const std::size_t own = place++;
    const auto* user = std::get_if<UserInput>(&input);
    const auto* tensor = user == nullptr ? nullptr : std::get_if<TensorArgument>(&user->arg);
    if (tensor == nullptr) continue;
    const TensorMeta& meta = program.graph.tensor_values.at(tensor->name);
    lines.push_back("input " + in_quotes(tensor->name) + ": " + std::string(name_of(meta.dtype)) +
                    declared_text(meta) + example_text(examples, own));
    if (meta.sizes.empty() || !meta.sizes.front().value) continue;
    lines.push_back("input " + in_quotes(tensor->name) + " has a first dimension of " +
                    std::to_string(*meta.sizes.front().value) +
                    " in the file: where that is the batch, train at that size, or export with "
                    "dynamic_shapes");
  }
  return lines;
}

}  // namespace decent::pt2
