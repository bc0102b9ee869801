// Names that other rooms give: valid where they are handed over, and only there.

#include <gmock/gmock.h>

#include "support.h"

namespace decent {
namespace {

using test::kData;
using test::kModel;
using test::kSmallest;
using test::refusal_of;
using ::testing::ElementsAre;

Recipe parse_with(const config::Names& names, const std::string& override_text) {
  const std::vector<std::string> overrides = {override_text};
  return parse_recipe(kSmallest, "run.yaml", overrides, names, test::variables({}));
}

TEST(Names, AreValidWhereTheyAreHandedOver) {
  config::Names names = test::kNames;
  names.metrics.push_back("sharpness");
  names.topologies.push_back("star");
  names.exchanges.push_back({.name = "fp8"});
  names.formats.push_back({.name = "tar", .keys = {{.name = "path", .type = OptionType::paths}}});
  EXPECT_EQ(parse_with(names, "eval.metrics=[sharpness]").eval.metrics,
            std::vector<std::string>{"sharpness"});
  EXPECT_EQ(parse_with(names, "schedule.metric=sharpness").schedule.options.value("metric"),
            OptionValue(std::string("sharpness")));
  EXPECT_EQ(parse_with(names, "parallel.topology=star").parallel.topology.name, "star");
  EXPECT_EQ(parse_with(names, "parallel.comm_dtype=fp8").parallel.comm_dtype, "fp8");
  EXPECT_EQ(parse_with(names, "parallel.comm_dtype_within=fp8").parallel.comm_dtype_within, "fp8");
  const SourceRecipe source =
      parse_with(names, "data.eval={format: tar, path: /a}").data.eval.value();
  EXPECT_EQ(source.format, "tar");
  EXPECT_THAT(source.options.get<Paths>("path"), ElementsAre("/a"));
}

TEST(Names, AreListedWhereTheyAreNotThere) {
  EXPECT_EQ(refusal_of("parallel.comm_dtype=fp33"),
            "--set parallel.comm_dtype=fp33: parallel.comm_dtype: expected one of fp32, bf16, "
            "modulo2, got 'fp33'; did you mean 'fp32'?");
  EXPECT_EQ(refusal_of("parallel.topology=star"),
            "--set parallel.topology=star: parallel.topology: expected one of complete, ring, "
            "one-peer-exp, alternating-exp-ring, got 'star'");
  EXPECT_EQ(refusal_of("eval.metrics=[los]"),
            "--set eval.metrics=[los]: eval.metrics: expected one of loss, accuracy, mae, got "
            "'los'; did you mean 'loss'?");
}

}  // namespace
}  // namespace decent
