#pragma once
// Reads the parts of an exported program from their JSON, one function per part, and checks how
// they fit together. What does not follow the schema throws UserError naming the place.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/pt2/archive/records.h"
#include "decent/pt2/json/document.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

Argument parse_argument(Json json);
TensorArgument parse_tensor_argument(Json json);
CustomObjArgument parse_custom_obj(Json json);
ScalarType parse_scalar_type(Json json);
Layout parse_layout(Json json);
Device parse_device(Json json);

/// A list whose values are read by `parse`.
template <typename Parse>
auto parse_list(Json json, Parse parse) {
  std::vector<decltype(parse(json))> items;
  for (const Json item : json.list()) items.push_back(parse(item));
  return items;
}

std::vector<std::string> parse_texts(Json json);
std::vector<std::int64_t> parse_integers(Json json);

Graph parse_graph(Json json);
TensorMeta parse_tensor_meta(Json json);

/// Of the program's signature.
InputSpec parse_input_spec(Json json);
OutputSpec parse_output_spec(Json json);

/// The tensors of a table of weights or of constants, whose records are in `folder`. `archive` is
/// the whole file. Throws UserError also for tensors that are pickled or do not fit into their
/// records.
ByName<Payload> parse_payloads(Json json, std::string_view folder, const Records& records,
                               std::span<const std::byte> archive);

/// The names of the fields of named tuples, by type name.
using NamedTuples = ByName<std::vector<std::string>>;

/// From the JSON of torch.utils._pytree.treespec_dumps. Throws UserError, which begins with `what`.
TreeSpec parse_tree_spec(std::string_view text, const NamedTuples& named_tuples,
                         const std::string& what);

/// The most nodes of a program, including nodes of its inner graphs.
inline constexpr std::size_t kMaxNodes = 100'000;

/// What a program guarantees beyond its schema. Throws UserError, which begins with `what`, if a
/// value is used before it is made or made twice, if the signature does not fit the graph, or if a
/// tensor is missing or differs from the graph's description.
void check(const ExportedProgram& program, const std::string& what);

}  // namespace decent::pt2
