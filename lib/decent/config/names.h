#pragma once
// The names that recipes use for what other rooms make. Each room gives the list of its own, and
// whoever loads a recipe hands them over: a name stands where the thing does that it names, and
// this room needs none of the others.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"

namespace decent::config {

/// A row that takes keys of its own: a format of data, a transform.
struct NamedOptions {
  std::string name;
  std::vector<OptionKey> keys;
};

/// A value of parallel.comm_dtype and comm_dtype_within.
struct ExchangeName {
  std::string name;
  /// Whether what it sends means something only to workers whose weights are near: it then needs an
  /// optimizer whose steps the learning rate bounds.
  bool needs_near_copies = false;
};

/// A value of parallel.method.
struct MethodName {
  std::string name;
  bool averages_weights = true;  // by any exchange, in any number of slices
  /// If not: the values of comm_dtype that it can send; empty where it sends nothing.
  std::vector<std::string> sends = {};
  double bucket_mb = 25;  // where the recipe does not say
};

struct Names {
  std::vector<std::string> losses;            // model.loss
  std::vector<std::string> metrics;           // eval.metrics, checkpoint.keep_best
  std::vector<std::string> topologies;        // parallel.topology
  std::vector<MethodName> methods;            // parallel.method
  std::vector<ExchangeName> exchanges;        // parallel.comm_dtype, comm_dtype_within
  std::vector<NamedOptions> formats;          // data.train and the like: format
  std::vector<NamedOptions> transforms = {};  // data.transforms
};

/// The number in a name of a family: 3 in "top3" of "top<k>", from 1 to 999,999,999; nothing in
/// other names, nor where `family` is none.
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

/// The entry of that name in one of these lists; null if there is none.
template <typename Named>
const Named* find_named(const std::vector<Named>& list, std::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Named& each) { return each.name == name; });
  return found == list.end() ? nullptr : &*found;
}

template <typename Named>
std::vector<std::string> names_in(const std::vector<Named>& list) {
  std::vector<std::string> names;
  for (const Named& each : list) names.push_back(each.name);
  return names;
}

}  // namespace decent::config
