#pragma once
// Helpers for the tests of the recipe: a smallest valid recipe, and the message of what is refused.

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decent/config/loader.h"
#include "decent/core/error.h"

namespace decent::test {

/// Names as other rooms give them.
inline const config::Names kNames = {
    .losses = {{.name = "cross_entropy",
                .keys = {{.name = "label_smoothing",
                          .type = OptionType::number,
                          .fallback = 0.0,
                          .range = within(0, 1)}}},
               {.name = "nll"},
               {.name = "mse"},
               {.name = "l1"},
               {.name = "huber"},
               {.name = "bce_with_logits"},
               {.name = "output"}},
    .metrics = {"loss", "accuracy", "mae"},
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
                             .type = OptionType::number,
                             .fallback = kNull,
                             .range = above(0)}}}},
    .near_exchanges = {"modulo2"},
    .formats = {{.name = "builtin",
                 .keys = {{.name = "name"},
                          {.name = "split",
                           .names = {"train", "test"},
                           .scope = OptionScope::place}}},
                {.name = "safetensors", .keys = {{.name = "path", .type = OptionType::paths}}},
                {.name = "npz", .keys = {{.name = "path", .type = OptionType::paths}}}},
    .transforms = {
        {.name = "crop",
         .keys = {{.name = "size", .type = OptionType::integers, .range = at_least(1)},
                  {.name = "padding", .type = OptionType::integer, .fallback = std::int64_t{0}}}},
        {.name = "flip", .keys = {{.name = "p", .type = OptionType::number, .fallback = 0.5}}},
        {.name = "to_float", .keys = {}}}};

/// What a recipe cannot do without.
inline const std::string kModel = "model: {path: m.pt}\n";
inline const std::string kData = "data: {train: {format: builtin, name: digits, split: train}}\n";
inline const std::string kSmallest = kModel + kData;

inline Variables variables(std::map<std::string, std::string> values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

inline Recipe parse(const std::string& text, const std::vector<std::string>& overrides = {},
                    std::map<std::string, std::string> environment = {}) {
  return parse_recipe(text, "/recipes/run.yaml", overrides, kNames,
                      variables(std::move(environment)));
}

/// The message of the UserError that the recipe ends in; a failure where there is none.
inline std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {},
                           std::map<std::string, std::string> environment = {}) {
  try {
    parse_recipe(text, "run.yaml", overrides, kNames, variables(std::move(environment)));
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted:\n" << text;
  return "";
}

/// The refusal of one override of the smallest recipe.
inline std::string refusal_of(const std::string& override_text) {
  return refusal(kSmallest, {override_text});
}

}  // namespace decent::test
