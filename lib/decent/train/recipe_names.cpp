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

std::vector<config::NamedOptions> source_formats() {
  std::vector<config::NamedOptions> formats;
  for (const DataFormat& format : data_formats())
    formats.push_back({.name = format.name, .keys = format.keys});
  return formats;
}

std::vector<config::NamedOptions> transforms() {
  std::vector<config::NamedOptions> transforms;
  for (const Transform& transform : transform_rows())
    transforms.push_back({.name = transform.name, .keys = transform.keys});
  return transforms;
}

std::vector<config::ExchangeName> exchanges() {
  std::vector<config::ExchangeName> list;
  for (const std::string& name : exchange_names()) {
    list.push_back({.name = name, .needs_near_copies = exchange_method(name).needs_near_copies});
  }
  return list;
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
  return {.losses = loss_names(),
          .metrics = metric_names(),
          .topologies = topology_names(),
          .methods = methods(),
          .exchanges = exchanges(),
          .formats = source_formats(),
          .transforms = transforms()};
}

}  // namespace decent
