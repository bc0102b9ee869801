#pragma once
// A manifest to begin with.

#include <string>

#include "decent/checkpoint/manifest.h"

namespace decent::testing {

inline Manifest example(std::int64_t step = 500) {
  return {.program = "0.1.0 (build 0123456789ab)",
          .step = step,
          .epoch = 2,
          .consumed = 1024,
          .epochs_done = 2.7102272727272725,
          .world_size = 2,
          .metrics = {{"loss", 0.1 + 0.2}, {"accuracy", 0.96875}},
          .recipe = "name: digits\nseed: 0\n",
          .facts = {{"seed", "0"}, {"parameter fc.weight", "float32[10, 64]"}},
          .files = {{"rank-0000.safetensors", 214856, std::string(32, 'a')},
                    {"rank-0001.safetensors", 214857, std::string(32, 'b')}}};
}

}  // namespace decent::testing
