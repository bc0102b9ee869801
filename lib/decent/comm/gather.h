#pragma once
// The templates of Agreement and World, which gather values. nlohmann::json must convert T.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "decent/comm/agreement.h"
#include "decent/comm/cbor.h"
#include "decent/comm/outcome.h"
#include "decent/comm/world.h"

namespace decent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, code, message)

template <typename T>
void to_json(nlohmann::json& json, const Attempt<T>& attempt) {
  json = attempt.outcome;
  if (attempt.value) json["value"] = *attempt.value;
}

template <typename T>
void from_json(const nlohmann::json& json, Attempt<T>& attempt) {
  json.get_to(attempt.outcome);
  if (json.contains("value")) attempt.value = json["value"].template get<T>();
}

template <typename T>
std::vector<T> Agreement::gather(const std::string& name, const T& own) const {
  std::vector<T> all;
  for (const std::string& bytes : share_(name, to_cbor(own))) all.push_back(from_cbor<T>(bytes));
  return all;
}

template <StageWithValue Stage>
std::vector<Attempt<ValueOf<Stage>>> Agreement::attempt(const std::string& name,
                                                        Stage stage) const {
  Attempt<ValueOf<Stage>> own;
  own.outcome = run([&] { own.value = stage(); });
  std::vector<Attempt<ValueOf<Stage>>> all;
  for (const std::string& bytes : tell(name, own.outcome, to_cbor(own))) {
    all.push_back(from_cbor<Attempt<ValueOf<Stage>>>(bytes));
  }
  return all;
}

template <StageWithValue Stage>
std::vector<ValueOf<Stage>> Agreement::agree(const std::string& name, Stage stage) const {
  std::vector<Attempt<ValueOf<Stage>>> attempts = attempt(name, std::move(stage));
  throw_if_failed(outcomes_of(attempts));
  std::vector<ValueOf<Stage>> values;
  for (auto& each : attempts) values.push_back(std::move(each.value.value()));
  return values;
}

template <StageWithValue Stage>
std::vector<ValueOf<Stage>> World::agree(const std::string& name, Stage stage) {
  return agreement_.agree(name, std::move(stage));
}

template <StageWithValue Stage>
std::vector<Attempt<ValueOf<Stage>>> World::attempt(const std::string& name, Stage stage) {
  return agreement_.attempt(name, std::move(stage));
}

template <StageWithValue Stage>
std::vector<Attempt<ValueOf<Stage>>> World::attempt_of_survivors(const std::string& name,
                                                                 Stage stage) {
  return survivors_.attempt(name, std::move(stage));
}

template <typename T>
std::vector<T> World::gather(const std::string& name, const T& own) {
  return agreement_.gather(name, own);
}

}  // namespace decent
