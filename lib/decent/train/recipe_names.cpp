#include "decent/train/recipe_names.h"

#include "decent/config/choices.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/topology/topology.h"

namespace decent {

config::Names recipe_names() {
  return {.losses = names_of<LossName>(),
          .metrics = {"loss", "accuracy", "top5", "perplexity", "mse", "mae", "r2"},
          .topologies = topology_names(),
          .exchanges = exchange_names(),
          .formats = {{.name = "builtin", .keys = {"name", "split"}},
                      {.name = "safetensors", .keys = {"path"}},
                      {.name = "npz", .keys = {"path"}}}};
}

}  // namespace decent
