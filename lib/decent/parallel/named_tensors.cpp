#include "decent/parallel/named_tensors.h"

namespace decent {
namespace {

NamedTensors select(const NamedTensors& tensors, bool trained) {
  NamedTensors result;
  for (const auto& entry : tensors) {
    if (entry.second.requires_grad() == trained) result.push_back(entry);
  }
  return result;
}

}  // namespace

NamedTensors trained_part(const NamedTensors& parameters) { return select(parameters, true); }
NamedTensors untrained_part(const NamedTensors& parameters) { return select(parameters, false); }

}  // namespace decent
