#pragma once
// The operator that a node calls.

#include <string>
#include <string_view>

namespace decent::pt2 {

/// "torch.ops.aten.add_.Tensor" is add_, overload Tensor, of the library aten; "_operator.mul" is
/// mul of _operator, without an overload.
struct Target {
  std::string library;
  std::string name;
  std::string overload;  // empty for "default"

  /// "aten.add_", the key for finding rules.
  std::string operator_name() const { return library + "." + name; }
  bool is_aten() const { return library == "aten"; }
};

Target parse_target(std::string_view text);

}  // namespace decent::pt2
