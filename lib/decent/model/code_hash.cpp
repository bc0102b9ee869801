#include "decent/model/code_hash.h"

#include <c10/util/hash.h>

#include <sstream>

#include "decent/model/forward_graph.h"

namespace decent {
namespace {

std::string code_text(const torch::jit::Module& module) {
  return forward_graph(module)->toString(/*print_source_locations=*/false);
}

// Numbers and texts that a model keeps as attributes control its code (self.eps, self.heads). The
// train/eval switch is left out, because the trainer sets it.
std::string attributes_text(const torch::jit::Module& module) {
  std::ostringstream text;
  for (const auto& [path, part] : module.named_modules()) {
    for (const auto& attribute : part.named_attributes(/*recurse=*/false)) {
      const c10::IValue& value = attribute.value;
      const bool plain = value.isInt() || value.isDouble() || value.isBool() || value.isString() ||
                         value.isIntList() || value.isDoubleList() || value.isBoolList();
      if (!plain || attribute.name == "training") continue;
      text << path << '.' << attribute.name << '=' << value << '\n';
    }
  }
  return text.str();
}

}  // namespace

std::string code_hash(const torch::jit::Module& module) {
  return c10::sha1(code_text(module) + attributes_text(module)).str();
}

}  // namespace decent
