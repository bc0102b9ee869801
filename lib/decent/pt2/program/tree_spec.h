#pragma once
// The structure of Python's nested arguments and results, which torch.utils._pytree calls a
// TreeSpec.

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace decent::pt2 {

/// A key of a dictionary, or the name of a field.
using TreeKey = std::variant<std::string, std::int64_t, bool>;

/// A leaf is one argument or result of the graph, in order from left to right.
struct TreeSpec {
  enum class Kind {
    leaf,
    tuple,
    list,
    dict,    // also OrderedDict and defaultdict
    fields,  // a named tuple, a dataclass, a ModelOutput: named, not a dictionary
    other,   // a type whose context has no names
  };
  Kind kind = Kind::leaf;
  std::string type;           // "builtins.dict", "transformers.modeling_outputs.BaseModelOutput"
  std::vector<TreeKey> keys;  // dict, fields: one for each child
  std::string context;        // the file's JSON about the type
  std::vector<TreeSpec> children;

  std::size_t leaves() const;
};

}  // namespace decent::pt2
