// Assertions of facts at the export are left out: the method begins with its own checks.

#include <array>

#include "decent/pt2/translate/rules.h"

namespace decent::pt2 {

void leave_out(NodeContext& /*context*/) {}

std::span<const OperatorRule> assertion_rules() {
  static constexpr std::array kRules = std::to_array<OperatorRule>({
      {"aten._assert_async", leave_out},
      {"aten._assert_scalar", leave_out},
      {"aten._assert_tensor_metadata", leave_out},
      {"aten._functional_assert_async", leave_out},
      {"aten._functional_assert_scalar", leave_out},
      {"aten._functional_sym_constrain_range", leave_out},
      {"aten._functional_sym_constrain_range_for_size", leave_out},
      {"aten.sym_constrain_range", leave_out},
      {"aten.sym_constrain_range_for_size", leave_out},
      {"torch._check", leave_out},
      {"torch._check_is_size", leave_out},
  });
  return kRules;
}

}  // namespace decent::pt2
