// Any bytes are a valid input or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <string>

#include "decent/config/loader.h"
#include "decent/core/error.h"

namespace {

const decent::config::Names kNames = {
    .losses = {{.name = "cross_entropy",
                .keys = {{.name = "label_smoothing",
                          .type = decent::OptionType::number,
                          .fallback = 0.0,
                          .range = decent::within(0, 1)}}},
               {.name = "nll"},
               {.name = "mse"},
               {.name = "l1"},
               {.name = "huber"},
               {.name = "bce_with_logits"},
               {.name = "output"}},
    .metrics = {"loss", "accuracy", "top5", "perplexity", "mse", "mae", "r2"},
    .topologies = {"complete", "ring", "one-peer-exp", "alternating-exp-ring"},
    .methods = {{.name = "gossip"},
                {.name = "all_reduce",
                 .averages_weights = false,
                 .sends = {"fp32", "bf16"},
                 .bucket_mb = 4},
                {.name = "none", .averages_weights = false}},
    .exchanges = {{.name = "fp32"},
                  {.name = "bf16"},
                  {.name = "modulo2",
                   .keys = {{.name = "modulo_range",
                             .type = decent::OptionType::number,
                             .fallback = decent::kNull,
                             .range = decent::above(0)}}},
                  {.name = "modulo4"}},
    .near_exchanges = {"modulo2", "modulo4"},
    .formats = {{.name = "builtin", .keys = {{.name = "name"}, {.name = "split"}}},
                {.name = "safetensors",
                 .keys = {{.name = "path", .type = decent::OptionType::paths}}},
                {.name = "npz", .keys = {{.name = "path", .type = decent::OptionType::paths}}}},
    .transforms = {
        {.name = "crop", .keys = {{.name = "size", .type = decent::OptionType::integers}}},
        {.name = "flip",
         .keys = {{.name = "p", .type = decent::OptionType::number, .fallback = 0.5}}}}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const decent::Variables nothing = [](const std::string&) { return std::nullopt; };
    const std::string text(reinterpret_cast<const char*>(data), size);
    const decent::Recipe recipe = decent::parse_recipe(text, "input.yaml", {}, kNames, nothing);
    // What is valid prints, and reads back to the same.
    const std::string printed = decent::print_recipe(recipe);
    if (decent::parse_recipe(printed, "input.yaml", {}, kNames, nothing) != recipe)
      __builtin_trap();
  } catch (const decent::UserError&) {
  }
  return 0;
}
