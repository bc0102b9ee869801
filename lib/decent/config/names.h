#pragma once
// The names that recipes use for what other rooms make. Each room gives the list of its own, and
// whoever loads a recipe hands them over: a name stands where the thing does that it names, and
// this room needs none of the others.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"

namespace decent::config {

/// A row that takes keys of its own: a format of data.train and data.eval, a transform.
struct NamedOptions {
  std::string name;
  std::vector<OptionKey> keys;
};

/// A value of parallel.comm_dtype.
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
  std::vector<ExchangeName> exchanges;        // parallel.comm_dtype
  std::vector<NamedOptions> formats;          // data.train, data.eval: format
  std::vector<NamedOptions> transforms = {};  // data.transforms
};

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
