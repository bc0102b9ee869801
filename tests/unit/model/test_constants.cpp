// Which constants of forward a GPU gets. What PyTorch's operators do there is known, not tried: no
// test of this room has a GPU.

#include "decent/model/constants.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include "decent/model/forward_graph.h"
#include "decent/model/script_source.h"

namespace decent {
namespace {

const at::Tensor kTwo = at::scalar_tensor(2, at::kLong);

std::shared_ptr<torch::jit::Graph> graph_of(const std::string& body, const at::Tensor& constant) {
  const auto graph = forward_graph(compile(
      {.kind = "Test",
       .methods = "def forward(self, x, y):\n" + body,
       .constant = [&](const std::string&) -> std::optional<at::Tensor> { return constant; }}));
  // As torch.jit.trace writes a number that a tensor is made of, which cannot be written here.
  for (torch::jit::Node* node : graph->nodes()) {
    if (node->kind() != c10::aten::scalar_tensor) continue;
    const torch::jit::WithInsertPoint before(node);
    node->output()->replaceAllUsesWith(
        graph->insertNode(graph->createNumToTensor(node->input(0)))->output());
  }
  return graph;
}

bool moves(const std::string& expression, const at::Tensor& constant = kTwo) {
  return !constants_to_move(
              *graph_of("    n = torch.scalar_tensor(x.size(0))\n    c = CONSTANTS.c\n"
                        "    return " +
                            expression + "\n",
                        constant))
              .empty();
}

TEST(ConstantsToMove, AreThoseThatAGpuReads) {
  EXPECT_TRUE(moves("x * c", at::tensor({1, 2, 3})));
  EXPECT_TRUE(moves("x * c", at::scalar_tensor(2.0)));
  EXPECT_TRUE(moves("torch.embedding(x, c)", at::tensor({1, 2, 3})));
}

TEST(ConstantsToMove, AreNotIntegersThatAreOnlyComputedWith) {
  EXPECT_FALSE(moves("x * c"));
  EXPECT_FALSE(moves("torch.floor_divide(x * c, c)"));
  EXPECT_FALSE(moves("torch.logical_and(x > 0, c)", at::scalar_tensor(true, at::kBool)));
  EXPECT_FALSE(moves("x.view([-1, int(torch.floor_divide(n, c))]) * c"));
  EXPECT_FALSE(moves("x.view([-1, int(torch.mul(torch.sub(n, c), n).to(torch.int32))])"));
}

// The default is to move: what is not known to accept a tensor on the CPU may not.
TEST(ConstantsToMove, AreIntegersOfWhichMoreIsAsked) {
  EXPECT_TRUE(moves("torch.stack([c, c])"));
  EXPECT_TRUE(moves("torch.cat([x, c.view([1])])"));
  EXPECT_TRUE(moves("x[c]"));
  EXPECT_TRUE(moves("torch.where(x > 0, x, c)"));
  EXPECT_TRUE(moves("torch.embedding(x, c)"));
  EXPECT_TRUE(moves("torch.pow(x, c)"));
  EXPECT_TRUE(moves("torch.full_like(c, 1)"));
  EXPECT_TRUE(moves("x * c.expand([3])"));
  EXPECT_TRUE(moves("c"));
  EXPECT_TRUE(moves("(x * c, c)"));
}

// What is computed from nothing on a GPU is on the CPU as well; where that cannot be, the constant
// takes it along.
TEST(ConstantsToMove, AreIntegersWhoseResultsMustBeOnAGpu) {
  EXPECT_TRUE(moves("torch.stack([torch.mul(n, c), x.sum()])"));
  EXPECT_TRUE(moves("torch.mul(torch.mul(n, c), c) + 1"));  // it is the output
  EXPECT_FALSE(moves("torch.stack([torch.mul(x.sum(), c), x.sum()])"));
  EXPECT_TRUE(moves("torch.stack([torch.mul(n if x.size(1) > 1 else n, c), x.sum()])"));
}

TEST(ConstantsToMove, AreNotArgumentsThatPyTorchWantsOnTheCpu) {
  const at::Tensor lengths = at::tensor({3, 2, 1});
  EXPECT_FALSE(moves("torch._pack_padded_sequence(x, c, True)", lengths));
  EXPECT_FALSE(moves("torch._pad_packed_sequence(x, c, True, 0.0, 3)", lengths));
  EXPECT_FALSE(moves("torch.tensor_split(x, c)", lengths));
  EXPECT_FALSE(moves("torch.tensor_split(x, c)"));
  EXPECT_FALSE(moves("torch.narrow(x, 0, c, 1)"));
  EXPECT_TRUE(moves("torch.tensor_split(c, n)", lengths));
  EXPECT_TRUE(moves("(torch._pack_padded_sequence(x, c, True), x * c)", lengths));
}

// A constant that stands for two things goes where one of them is wanted.
TEST(ConstantsToMove, AreEachOnce) {
  const auto graph =
      graph_of("    return (x + CONSTANTS.c, x[CONSTANTS.c], y[CONSTANTS.c])\n", kTwo);
  const auto moving = constants_to_move(*graph);
  ASSERT_EQ(moving.size(), 1U);
  EXPECT_TRUE(at::equal(moving[0], kTwo));
}

// Lines of what torch.jit.trace makes of nn.MultiheadAttention with 2 heads, whose constants are
// told apart by their values: 2 is also the factor of an activation.
TEST(ConstantsToMove, LeavesTheShapesOfATracedTransformerToTheHost) {
  const char* const attention =
      "    query = torch.transpose(x, 1, 0) * CONSTANTS.c0\n"
      "    tgt_len = torch.scalar_tensor(torch.size(query, 0))\n"
      "    bsz = torch.scalar_tensor(torch.size(query, 1))\n"
      "    embed_dim = torch.scalar_tensor(torch.size(query, 2))\n"
      "    head_dim = torch.div(embed_dim, CONSTANTS.c0, rounding_mode=\"trunc\")\n"
      "    _19 = [int(tgt_len), int(torch.mul(bsz, CONSTANTS.c0)), int(head_dim)]\n"
      "    q0 = torch.transpose(torch.view(query, _19), 0, 1)\n"
      "    src_len = torch.scalar_tensor(torch.size(q0, 1))\n"
      "    q1 = torch.view(q0, [int(bsz), 2, int(src_len), int(head_dim)])\n"
      "    attn = torch.scaled_dot_product_attention(q1, q1, q1, None, 0., True)\n"
      "    attn0 = torch.contiguous(torch.permute(attn, [2, 0, 1, 3]))\n"
      "    return torch.view(attn0, [int(torch.mul(bsz, tgt_len)), int(embed_dim)])\n";
  EXPECT_TRUE(constants_to_move(*graph_of(attention, kTwo)).empty());
}

}  // namespace
}  // namespace decent
