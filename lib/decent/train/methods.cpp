#include "decent/train/methods.h"

#include "decent/config/names.h"
#include "decent/core/error.h"
#include "decent/train/methods/built_in.h"
#include "decent/train/plan.h"

namespace decent {

const std::vector<ParallelMethod>& parallel_methods() {
  static const std::vector<ParallelMethod> methods = {gossip_method(), all_reduce_method(),
                                                      alone_method()};
  return methods;
}

const ParallelMethod& parallel_method(std::string_view name) {
  if (const auto* method = find_named(parallel_methods(), name)) return *method;
  throw UserError("unknown parallel.method '" + std::string(name) + "'");
}

const ParallelMethod& method_of(const Run& run) {
  return parallel_method(run.task.recipe.parallel.method);
}

}  // namespace decent
