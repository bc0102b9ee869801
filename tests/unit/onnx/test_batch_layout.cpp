#include "decent/onnx/report/batch_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "graphs.h"

namespace decent::onnx {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFits = "fits";

Dimension size(std::int64_t value) { return {.value = value, .parameter = ""}; }
Dimension named(const std::string& name) { return {.value = std::nullopt, .parameter = name}; }

/// What is said of an input `x` of this shape and a batch of data of that one.
std::string said(const std::vector<Dimension>& declared, const std::vector<std::int64_t>& batch,
                 const std::string& producer = "") {
  ValueInfo input = testing::value("x");
  input.shape = declared;
  Model file;
  file.producer_name = producer;
  const auto found = input_mismatch(input, "pixels", batch, export_advice(file));
  return found ? found->text + "\n" + found->way_out : kFits;
}

std::string said_of_output(const std::vector<Dimension>& declared,
                           std::optional<std::int64_t> class_dim) {
  ValueInfo output = testing::value("y");
  output.shape = declared;
  const auto found = output_mismatch(output, class_dim, export_advice(Model{}));
  return found ? found->text : kFits;
}

TEST(InputLayout, FitsWhereTheFileSaysNothingElse) {
  EXPECT_EQ(said({named("batch"), size(3)}, {32, 3}), kFits);
  EXPECT_EQ(said({named(""), named("")}, {32, 3}), kFits);
  EXPECT_EQ(said({size(4), size(3)}, {32, 3}), kFits);  // another batch is no matter of layout
  EXPECT_EQ(said({size(0), size(0)}, {32, 3}), kFits);  // 0 for a free dimension
  EXPECT_EQ(said({}, {32, 3}), kFits);                  // a shape that the tool did not know
}

TEST(InputLayout, AnInputWithoutAShapeFits) {
  ValueInfo input = testing::value("x");
  input.shape.reset();
  EXPECT_FALSE(input_mismatch(input, "x", std::vector<std::int64_t>{32, 3}, export_advice({})));
}

TEST(InputLayout, FindsTheBatchByItsName) {
  EXPECT_EQ(said({named("seq"), named("batch"), size(8)}, {32, 10, 8}),
            "input 'x' of the model is [seq, batch, 8] in the file, the field 'pixels' of a batch "
            "is [32, 10, 8]: the batch is dimension 1 there (counted from 0), but samples of the "
            "data are dimension 0, so that they are mixed up\n"
            "Export the model with the batch as its first dimension, or with a transpose at its "
            "start and its end");
  for (const char* name : {"N", "B", "bs", "batch_size", "Batch", "dynamic_batch"})
    EXPECT_THAT(said({named("T"), named(name)}, {32, 10}), HasSubstr("batch is dimension 1"));
}

TEST(InputLayout, TheFirstDimensionMayHaveTheNameOfABatchAsWell) {
  EXPECT_EQ(said({named("B"), named("N"), size(3)}, {32, 100, 3}), kFits);  // points
  EXPECT_EQ(said({named("s0"), named("length")}, {32, 100}), kFits);
}

TEST(InputLayout, FindsTheBatchByNumbersThatFitOnlySo) {
  EXPECT_THAT(said({size(10), size(4), size(8)}, {32, 10, 8}), HasSubstr("batch is dimension 1"));
  EXPECT_THAT(said({size(10), size(8), size(4)}, {32, 10, 8}), HasSubstr("batch is dimension 2"));
  // Where two would do, neither is told.
  EXPECT_THAT(said({size(10), size(8), size(8)}, {32, 10, 8}), HasSubstr("differ in dimension 1"));
}

TEST(InputLayout, KnowsChannelsFirstFromChannelsLast) {
  EXPECT_THAT(said({named("n"), size(3), size(12), size(12)}, {32, 12, 12, 3}),
              HasSubstr("x.transpose(0, 3, 1, 2)"));
  EXPECT_THAT(said({named("n"), size(12), size(12), size(3)}, {32, 3, 12, 12}),
              HasSubstr("x.transpose(0, 2, 3, 1)"));
  EXPECT_THAT(said({named("n"), size(3), named("h"), named("w")}, {32, 12, 12, 3}),
              HasSubstr("Store samples as [3, h, w]; in numpy: x.transpose(0, 3, 1, 2)"));
  // Of a batch of 1, whose number could be taken for a channel.
  EXPECT_THAT(said({size(1), size(6), size(6), size(1)}, {32, 1, 6, 6}),
              HasSubstr("x.transpose(0, 2, 3, 1)"));
  EXPECT_EQ(said({named("n"), size(3), size(3), size(3)}, {32, 3, 3, 3}), kFits);
}

TEST(InputLayout, KnowsAnotherNumberOfDimensions) {
  EXPECT_THAT(said({named("n"), size(1), size(28), size(28)}, {32, 784}),
              HasSubstr("3 dimensions in the file and 1 in the data\nStore samples as [1, 28, 28]; "
                        "in numpy: x.reshape(-1, 1, 28, 28)"));
  EXPECT_THAT(said({named("n"), size(1), named("h"), size(28)}, {32, 784}),
              ::testing::EndsWith("Store samples as [1, h, 28]"));
}

TEST(InputLayout, OtherSizesAreToldWithTheWordsOfTheTool) {
  EXPECT_THAT(said({named("n"), size(3), size(224), size(224)}, {32, 3, 160, 160}, "pytorch"),
              HasSubstr("they differ in dimension 2 and 3\nStore samples as [3, 224, 224], or "
                        "export with these dimensions in dynamic_shapes (dynamic_axes)"));
  EXPECT_THAT(said({named("n"), size(128)}, {32, 64}, "tf2onnx"),
              HasSubstr("convert with None for these dimensions in input_signature"));
}

TEST(OutputLayout, TheBatchComesFirstUnlessTheClassesDo) {
  EXPECT_THAT(said_of_output({named("seq"), named("batch"), size(5)}, std::nullopt),
              HasSubstr("output 'y' of the model is [seq, batch, 5] in the file"));
  EXPECT_THAT(said_of_output({size(5), named("batch")}, std::nullopt), HasSubstr("dimension 1"));
  EXPECT_EQ(said_of_output({size(5), named("batch")}, 0), kFits);
  EXPECT_THAT(said_of_output({size(5), named("seq"), named("batch")}, 0), HasSubstr("dimension 2"));
  EXPECT_EQ(said_of_output({named("batch"), named("seq"), size(5)}, std::nullopt), kFits);
}

}  // namespace
}  // namespace decent::onnx
