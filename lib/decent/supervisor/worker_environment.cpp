#include "decent/supervisor/worker_environment.h"

#include <algorithm>
#include <map>

#include "decent/comm/launch.h"

namespace decent {
namespace {

std::map<std::string, std::string> variables_of(const WorkerPlace& place) {
  std::map<std::string, std::string> variables = {
      {"RANK", std::to_string(place.rank)},
      {"WORLD_SIZE", std::to_string(place.workers)},
      {"LOCAL_RANK", std::to_string(place.rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(place.workers)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(place.port)},
      {kSupervisorVariable, std::to_string(place.supervisor)}};
  if (place.store_listener >= 0)
    variables[kStoreListenerVariable] = std::to_string(place.store_listener);
  return variables;
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

}  // namespace

std::vector<std::string> environment_of(const WorkerPlace& place,
                                        const std::vector<std::string>& inherited, int processors) {
  std::map<std::string, std::string> own = variables_of(place);
  // A single worker takes the number of threads that LibTorch chooses by itself.
  if (place.workers > 1)
    own["OMP_NUM_THREADS"] = std::to_string(std::max(1, processors / place.workers));
  std::vector<std::string> all;
  for (const std::string& variable : inherited) {
    const std::string name = name_of(variable);
    if (name == "OMP_NUM_THREADS") own.erase(name);
    if (!own.contains(name) && !name.starts_with("TORCHELASTIC_")) all.push_back(variable);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

}  // namespace decent
