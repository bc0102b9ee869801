#pragma once
// World::gather. Apart from world.h because of what the JSON library costs to compile.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "decent/comm/outcome.h"
#include "decent/comm/world.h"

namespace decent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, code, message)

// CBOR, as texts of messages need not be UTF-8.
template <typename T>
std::vector<T> World::gather(const std::string& topic, const T& own) {
  std::string bytes;
  nlohmann::json::to_cbor(nlohmann::json(own), bytes);
  std::vector<T> all;
  for (const std::string& given : gather_bytes(topic, std::move(bytes))) {
    all.push_back(nlohmann::json::from_cbor(given).get<T>());
  }
  return all;
}

}  // namespace decent
