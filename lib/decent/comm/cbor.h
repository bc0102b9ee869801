#pragma once
// Converts values of types that nlohmann::json knows to the bytes that workers send each other. The
// bytes are CBOR, because messages and file names need not be UTF-8.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace decent {

template <typename T>
std::string to_cbor(const T& value) {
  std::string bytes;
  nlohmann::json::to_cbor(nlohmann::json(value), bytes);
  return bytes;
}

template <typename T>
T from_cbor(const std::string& bytes) {
  return nlohmann::json::from_cbor(bytes).get<T>();
}

}  // namespace decent
