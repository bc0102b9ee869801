#include "decent/train/recipe_names.h"

#include "decent/data/formats.h"
#include "decent/data/transforms/transform.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/task/losses.h"
#include "decent/task/metrics.h"
#include "decent/topology/topology.h"
#include "decent/train/methods.h"

namespace decent {
namespace {

template <class Rows>
std::vector<NamedOptions> with_keys(const Rows& rows) {
  std::vector<NamedOptions> all;
  for (const auto& row : rows) all.push_back({.name = std::string(row.name), .keys = row.keys});
  return all;
}

std::vector<ExchangeMethod> exchanges() {
  std::vector<ExchangeMethod> all;
  for (const std::string& name : exchange_names()) all.push_back(exchange_method(name));
  return all;
}

std::vector<std::string> near_exchanges() {
  std::vector<std::string> names;
  for (const ExchangeMethod& method : exchanges())
    if (method.needs_near_copies) names.push_back(method.name);
  return names;
}

std::vector<config::MethodName> methods() {
  std::vector<config::MethodName> list;
  for (const ParallelMethod& method : parallel_methods()) {
    list.push_back({.name = method.name,
                    .averages_weights = method.averages_weights,
                    .sends = method.sends,
                    .bucket_mb = method.bucket_mb});
  }
  return list;
}

}  // namespace

config::Names recipe_names() {
  return {.losses = with_keys(loss_functions()),
          .metrics = metric_names(),
          .topologies = topology_names(),
          .methods = methods(),
          .exchanges = with_keys(exchanges()),
          .near_exchanges = near_exchanges(),
          .formats = with_keys(data_formats()),
          .transforms = with_keys(transform_rows())};
}

}  // namespace decent
