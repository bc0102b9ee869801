#pragma once
// The names in recipes of things that other rooms make. Each room has the list of its own names,
// and the caller that loads a recipe passes the lists. So each name is defined next to what it
// names, and this room depends on no other.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"
#include "decent/core/registry.h"

namespace decent::config {

/// A value of parallel.method.
struct MethodName {
  std::string name;
  bool averages_weights = true;  // by any exchange, in any number of slices
  /// If not: the values of comm_dtype that it can send; empty if it sends nothing.
  std::vector<std::string> sends = {};
  double bucket_mb = 25;  // if the recipe does not say
};

struct Names {
  std::vector<NamedOptions> losses;     // model.loss
  std::vector<std::string> metrics;     // eval.metrics, checkpoint.keep_best
  std::vector<std::string> topologies;  // parallel.topology
  std::vector<MethodName> methods;      // parallel.method
  std::vector<NamedOptions> exchanges;  // parallel.comm_dtype, comm_dtype_within
  /// The exchanges that work only between workers whose weights are close. They need an optimizer
  /// whose steps are bounded by the learning rate.
  std::vector<std::string> near_exchanges;
  std::vector<NamedOptions> formats;          // data.train and the like: format
  std::vector<NamedOptions> transforms = {};  // data.transforms
};

/// The number in a name of a family, from 1 to 999,999,999: 3 in "top3" of "top<k>". Nothing for
/// other names, or if `family` is not a family.
inline std::optional<std::int64_t> number_in(std::string_view family, std::string_view name) {
  constexpr std::string_view kNumber = "<k>";
  constexpr std::size_t kMostDigits = 9;
  if (!family.ends_with(kNumber)) return std::nullopt;
  family.remove_suffix(kNumber.size());
  if (!name.starts_with(family)) return std::nullopt;
  name.remove_prefix(family.size());
  const bool is_number = !name.empty() && name.size() <= kMostDigits && name.front() != '0' &&
                         name.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? std::optional(std::stoll(std::string(name))) : std::nullopt;
}

}  // namespace decent::config
