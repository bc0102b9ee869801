#include "decent/model/torchscript/literals.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/graph_iterator.h>

#include <memory>

namespace decent {
namespace {

using torch::jit::Node;

// aten::to.device(self, device, dtype, non_blocking, copy, memory_format) of a constant.
bool pins_a_literal(const Node* node) {
  constexpr std::size_t kArguments = 6;
  if (node->kind() != c10::aten::to || node->inputs().size() != kArguments) return false;
  const auto literal = torch::jit::toIValue(node->input(0));
  const auto device = torch::jit::toIValue(node->input(1));
  return literal && literal->isTensor() && device && device->isDevice();
}

}  // namespace

void let_literals_follow(const torch::jit::Module& module) {
  for (const torch::jit::Module& part : module.modules()) {
    for (const torch::jit::Method& method : part.get_methods()) {
      std::shared_ptr<torch::jit::Graph> graph = method.graph();
      torch::jit::DepthFirstGraphNodeIterator nodes(graph);
      while (Node* node = nodes.next()) {
        if (pins_a_literal(node)) node->removeInput(1);  // leaves aten::to.dtype(self, ..)
      }
    }
  }
}

}  // namespace decent
