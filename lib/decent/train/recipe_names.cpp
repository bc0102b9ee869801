#include "decent/train/recipe_names.h"

#include "decent/data/formats.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/task/losses.h"
#include "decent/task/metrics.h"
#include "decent/topology/topology.h"

namespace decent {
namespace {

std::vector<config::SourceFormat> source_formats() {
  std::vector<config::SourceFormat> formats;
  for (const DataFormat& format : data_formats())
    formats.push_back({.name = format.name, .keys = format.keys});
  return formats;
}

}  // namespace

config::Names recipe_names() {
  return {.losses = loss_names(),
          .metrics = metric_names(),
          .topologies = topology_names(),
          .exchanges = exchange_names(),
          .formats = source_formats()};
}

}  // namespace decent
