#include "decent/train/methods.h"

#include "decent/core/error.h"
#include "decent/train/methods/built_in.h"

namespace decent {

const std::vector<ParallelMethod>& parallel_methods() {
  static const std::vector<ParallelMethod> methods = {gossip_method(), all_reduce_method(),
                                                      alone_method()};
  return methods;
}

const ParallelMethod& parallel_method(std::string_view name) {
  for (const ParallelMethod& method : parallel_methods()) {
    if (method.name == name) return method;
  }
  throw UserError("unknown parallel.method '" + std::string(name) + "'");
}

}  // namespace decent
