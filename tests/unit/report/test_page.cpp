#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/report/class_table.h"
#include "decent/report/page/metrics_table.h"
#include "decent/report/page/page.h"
#include "decent/report/page/page_data.h"
#include "decent/report/page/recipe_rows.h"
#include "decent/report/page/run_log.h"
#include "decent/report/page/topology_picture.h"
#include "decent/runfolder/run_file.h"

namespace decent {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

MetricsTable table_of(const std::string& text) {
  const testing::TemporaryFolder folder;
  write_file(folder / "metrics.jsonl", text);
  return read_metrics(folder / "metrics.jsonl");
}

TEST(MetricsTable, HasAColumnForEachField) {
  const MetricsTable table = table_of(
      "{\"kind\":\"train\",\"step\":2,\"loss\":0.1}\n"
      "{\"kind\":\"train\",\"step\":4,\"loss\":null,\"grad_norm\":3}\n"
      "{\"kind\":\"eval\",\"step\":4,\"loss\":7}\n");
  EXPECT_THAT(*table.train.find("step"), ElementsAre(2, 4));
  EXPECT_EQ(table.train.find("loss")->at(0), 0.1);
  EXPECT_TRUE(std::isnan(table.train.find("loss")->at(1)));
  EXPECT_TRUE(std::isnan(table.train.find("grad_norm")->at(0)));
  EXPECT_EQ(table.train.find("grad_norm")->at(1), 3);
  EXPECT_EQ(table.train.find("accuracy"), nullptr);
  EXPECT_EQ(table.eval.size(), 1U);
  EXPECT_EQ(table.unread, 0);
}

TEST(MetricsTable, CountsWhatIsNoLineOfARun) {
  const MetricsTable table = table_of(
      "{\"kind\":\"train\",\"step\":2}\nno\n{\"kind\":\"train\",\"step\":2}\n{\"kind\":\"train\","
      "\"step\":\"3\"}\n{\"step\":3}\n{\"kind\":\"train\",\"st");
  EXPECT_THAT(*table.train.find("step"), ElementsAre(2));
  EXPECT_EQ(table.unread, 5);
  EXPECT_TRUE(table.cut);
  EXPECT_FALSE(table_of("no\n").cut);
}

TEST(MetricsTable, PassesOverLinesOfLaterVersions) {
  const MetricsTable table =
      table_of("{\"kind\":\"train\",\"step\":2}\n{\"kind\":\"a new one\",\"step\":2}\n");
  EXPECT_THAT(*table.train.find("step"), ElementsAre(2));
  EXPECT_EQ(table.unread, 0);
}

TEST(MetricsTable, KeepsLaterEvaluationsApart) {
  const MetricsTable table = table_of(
      "{\"kind\":\"eval\",\"step\":1}\n{\"kind\":\"eval\",\"step\":1,\"source\":\"s\"}\n"
      "{\"kind\":\"end\",\"status\":\"completed\",\"step\":2,\"wall_s\":1.5}\n"
      "{\"kind\":\"eval\",\"step\":2}\n");
  EXPECT_EQ(table.eval.size(), 1U);
  ASSERT_EQ(table.later.size(), 2U);
  EXPECT_EQ(table.later[0].source, "s");
  ASSERT_EQ(table.ends.size(), 1U);
  EXPECT_EQ(table.ends[0].wall_s, 1.5);
}

TEST(MetricsTable, ForgetsTheEndOfARunThatWentOn) {
  const MetricsTable table = table_of(
      "{\"kind\":\"end\",\"status\":\"stopped\",\"step\":2,\"wall_s\":1}\n"
      "{\"kind\":\"train\",\"step\":3}\n");
  EXPECT_TRUE(table.ends.empty());
}

TEST(MetricsTable, HasEachResumeWithOtherWorkers) {
  const MetricsTable table = table_of(
      "{\"kind\":\"end\",\"status\":\"stopped\",\"step\":2,\"wall_s\":1}\n"
      "{\"kind\":\"resume\",\"step\":2,\"workers\":2,\"before\":4,\"lost\":[1,3],"
      "\"pause_s\":3.5}\n"
      "{\"kind\":\"resume\",\"step\":4,\"workers\":5,\"before\":2,\"lost\":[]}\n"
      "{\"kind\":\"resume\",\"step\":5,\"workers\":5,\"before\":2}\n"
      "{\"kind\":\"resume\",\"step\":5,\"workers\":5,\"before\":2,\"lost\":[\"1\"]}\n"
      "{\"kind\":\"resume\",\"step\":-5,\"workers\":5,\"before\":2,\"lost\":[]}\n");
  EXPECT_EQ(table.unread, 3);
  EXPECT_TRUE(table.ends.empty());
  ASSERT_EQ(table.resumes.size(), 2U);
  const WrittenResume& loss = table.resumes[0];
  EXPECT_EQ(loss.step, 2);
  EXPECT_EQ(loss.workers, 2);
  EXPECT_EQ(loss.before, 4);
  EXPECT_THAT(loss.lost, ElementsAre(1, 3));
  EXPECT_EQ(loss.pause_s, 3.5);
  EXPECT_TRUE(table.resumes[1].lost.empty());
  EXPECT_TRUE(std::isnan(table.resumes[1].pause_s));
}

RecipeRow row_of(const RunRecipe& recipe, const std::string& key) {
  for (const RecipeRow& row : recipe.rows())
    if (row.key == key) return row;
  ADD_FAILURE() << "no row " << key;
  return {};
}

TEST(RunRecipe, MarksWhatDiffersFromTheDefaults) {
  const RunRecipe recipe(
      "name: x\nmodel: {path: m.pt, inputs: [x]}\ndata: {batch_size: 32}\n"
      "optimizer: {name: adamw, lr: 1e-3, eps: 0.00000001, weight_decay: 0.1, betas: [0.9, 0.95]}\n"
      "unheard: {of: 1}\n");
  EXPECT_FALSE(row_of(recipe, "name").differs);
  EXPECT_TRUE(row_of(recipe, "model.path").differs);  // has no default
  EXPECT_FALSE(row_of(recipe, "model.inputs").differs);
  EXPECT_FALSE(row_of(recipe, "data.batch_size").differs);
  EXPECT_FALSE(row_of(recipe, "optimizer.lr").differs);
  EXPECT_FALSE(row_of(recipe, "optimizer.eps").differs);
  EXPECT_FALSE(row_of(recipe, "optimizer.weight_decay").differs);  // adamw's own
  EXPECT_TRUE(row_of(recipe, "optimizer.betas").differs);
  EXPECT_EQ(row_of(recipe, "optimizer.betas").value, "[0.9, 0.95]");
  EXPECT_EQ(row_of(recipe, "optimizer.betas").fallback, "[0.9, 0.999]");
  EXPECT_TRUE(row_of(recipe, "unheard").differs);
  EXPECT_THROW(RunRecipe("a: [1"), UserError);
  EXPECT_THROW(RunRecipe("[1]"), UserError);
}

TEST(RunRecipe, HasThePhasesOfItsTopology) {
  const RunRecipe own(
      "parallel:\n  topology: {phases: [[{ranks: [1, 0], weight: 0.25}], [{ranks: [0]}, {ranks: "
      "[1]}]]}\n");
  EXPECT_EQ(own.topology(), "phases");
  EXPECT_EQ(own.phases(2), (std::vector<Phase>{{{{0, 1}, 0.25}}, {{{0}, 1}, {{1}, 1}}}));
  EXPECT_THROW(own.phases(3), UserError);
  const RunRecipe machines("parallel: {topology: alternating-exp-ring, local_world_size: null}\n");
  EXPECT_THROW(machines.phases(4), UserError);  // the launcher knew
  EXPECT_THROW(RunRecipe("parallel: {topology: no-such}\n").phases(4), UserError);
}

TEST(RunLog, HasAllWarnings) {
  const testing::TemporaryFolder folder;
  const auto line = [](char level, const std::string& text) {
    return std::string("2026-01-02 03:04:05.678 ") + level + " " + text + "\n";
  };
  write_file(folder / "run.log", line('I', "decent-train 1") + line('W', "first") + "and more\n" +
                                     line('D', "phase 0: {0 1}") + "no more\n" +
                                     line('E', "second"));
  const std::vector<LogMessage> warnings = warnings_in(folder / "run.log");
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0].time, "2026-01-02 03:04:05");
  EXPECT_EQ(warnings[0].text, "first\nand more");
  EXPECT_EQ(warnings[1].text, "second");
}

Json page_of(const testing::TemporaryFolder& folder) {
  return Json::parse(run_as_json(RunFolder(folder.path()), /*running=*/false));
}

TEST(Page, ShowsTheStartsOfARun) {
  const testing::TemporaryFolder folder;
  write_file(folder / "recipe.yaml",
             "model: {loss: focal, focal_gamma: 2}\n"
             "parallel: {topology: alternating-exp-ring, local_world_size: null}\n");
  StartEntry start{.time = "2026-01-02 03:04:05",
                   .program = "0.1.0 (build x)",
                   .workers = 4,
                   .lines = {{"model", "m.pt"}},
                   .phases = {{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}}};
  const Texts defaults = {{"model.focal_gamma", "2"}, {"model.loss", "cross_entropy"}};
  add_start(folder / "run.json", start, false, {{"optimizer.lr", "1"}}, defaults);
  start.step = 7;
  add_start(folder / "run.json", start, true, {{"optimizer.lr", "2"}}, defaults);
  const Json run = page_of(folder);
  EXPECT_EQ(run["problems"], Json::array());
  EXPECT_EQ(run["workers"], 4);
  EXPECT_EQ(run["topology"]["phases"], 2);  // the launcher knew them
  ASSERT_EQ(run["starts"].size(), 2U);
  EXPECT_EQ(run["starts"][1]["step"], 7);
  EXPECT_EQ(run["starts"][1]["changed"],
            Json({{{"topic", "optimizer.lr"}, {"was", "1"}, {"is", "2"}}}));
  EXPECT_EQ(run["recipe"][0]["key"], "model.loss");
  EXPECT_TRUE(run["recipe"][0]["differs"]);
  EXPECT_FALSE(run["recipe"][1]["differs"]);  // run.json has the default
}

TEST(Page, ShowsWhoWentOnAfterALoss) {
  const testing::TemporaryFolder folder;
  write_file(folder / "recipe.yaml", "seed: 1\n");
  write_file(folder / "metrics.jsonl",
             "{\"kind\":\"resume\",\"step\":2,\"workers\":3,\"before\":4,\"lost\":[2],"
             "\"pause_s\":3.5}\n"
             "{\"kind\":\"resume\",\"step\":4,\"workers\":4,\"before\":3,\"lost\":[]}\n");
  const Json run = page_of(folder);
  EXPECT_EQ(run["problems"], Json::array());
  EXPECT_EQ(run["resumes"], Json::parse(R"([
      {"step": 2, "workers": 3, "before": 4, "lost": [2], "pause_s": 3.5},
      {"step": 4, "workers": 4, "before": 3, "lost": [], "pause_s": null}])"));
}

TEST(Page, ShowsTheTopologyThatReplacesTheRecipesOne) {
  const testing::TemporaryFolder folder;
  write_file(folder / "recipe.yaml",
             "parallel: {topology: alternating-exp-ring, local_world_size: 2}\n");
  StartEntry start{.workers = 3, .phases = {{{0, 1}, {2}}, {{0, 2}, {1}}}};
  add_start(folder / "run.json", start, false, {{kTopologyInEffect, "one-peer-exp"}}, {});
  const Json run = page_of(folder);
  EXPECT_EQ(run["problems"], Json::array());
  EXPECT_EQ(run["topology"]["name"], "one-peer-exp");
  EXPECT_EQ(run["topology"]["phases"], 2);
  EXPECT_THAT(run["topology"]["svg"].get<std::string>(), HasSubstr("one-peer-exp, 3 workers"));
}

TEST(Page, ShowsWhatOlderRunsSay) {
  const testing::TemporaryFolder folder;
  write_file(folder / "recipe.yaml",
             "data: {batch_size: 8}\nmodel: {loss: focal, focal_gamma: 3}\n");
  write_file(folder / "metrics.jsonl",
             "{\"kind\":\"train\",\"step\":1,\"loss\":1,\"samples_per_s\":1600,\"step_ms\":10}\n");
  const Json run = page_of(folder);
  EXPECT_EQ(run["problems"], Json::array());
  EXPECT_EQ(run["starts"], Json::array());
  EXPECT_EQ(run["workers"], 2);
  EXPECT_EQ(run["recipe"][2]["key"], "model.focal_gamma");
  EXPECT_FALSE(run["recipe"][2]["differs"]);  // from a default that nothing tells
}

TEST(Page, SaysIfRunJsonIsDamaged) {
  const testing::TemporaryFolder folder;
  write_file(folder / "recipe.yaml", "seed: 1\n");
  add_start(folder / "run.json", {}, false, {}, {{"seed", "[1"}});  // no YAML
  EXPECT_EQ(page_of(folder)["recipe"][0]["default"], "");
  write_file(folder / "run.json", "{");
  EXPECT_THAT(page_of(folder)["problems"].dump(), HasSubstr("run.json' is damaged"));
}

TEST(Confusion, IsReadAsItWasWritten) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(read_confusion(folder / "none.csv").has_value());
  const ConfusionMatrix matrix{.names = {"a,\"b\"", "two\nlines"}, .counts = {1, 2, 3, 4}};
  write_confusion(folder / "m.csv", matrix);
  const auto read = read_confusion(folder / "m.csv");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->names, matrix.names);
  EXPECT_EQ(read->counts, matrix.counts);
  for (const char* wrong : {"x,a\na,1,2\n", "x,a\na,-1\n", "x,a,b\na,1,2\n", "x,a\na,z\n"}) {
    write_file(folder / "m.csv", wrong);
    EXPECT_THROW(read_confusion(folder / "m.csv"), UserError) << wrong;
  }
}

TEST(TopologyPicture, ShowsWhoAverages) {
  const auto svg = topology_svg(make_topology("ring", 3, 3), {.title = "<ring>", .workers = 3});
  EXPECT_THAT(svg, HasSubstr("<title>&lt;ring&gt;</title>"));
  EXPECT_THAT(svg, HasSubstr("phase 0: {0 1} {2}; phase 1: {1 2} {0}"));
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (auto at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<line"), 3U);             // one pair in each phase
  EXPECT_EQ(count("stroke-dasharray"), 3U);  // and one worker alone
  EXPECT_EQ(count("<circle"), 9U);
}

TEST(Page, HoldsNumbersThatReadBackToTheSameBits) {
  const testing::TemporaryFolder folder;
  const double loss = 0.1 + 0.2;
  write_file(folder / "metrics.jsonl",
             nlohmann::json({{"kind", "train"}, {"step", 1}, {"loss", loss}}).dump() + "\n");
  const auto run = nlohmann::json::parse(run_as_json(RunFolder(folder.path()), /*running=*/true));
  EXPECT_EQ(run["train"]["loss"][0].get<double>(), loss);
  EXPECT_EQ(run["status"], "running");
}

TEST(Page, CannotBeLeftByWhatARunSays) {
  const testing::TemporaryFolder folder;
  write_file(folder / "metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"</script><b>\":1}\n");
  write_file(folder / "recipe.yaml", "name: \"</script><!--<script>\"\n");
  const RunFolder runs[] = {RunFolder(folder.path())};
  const std::string data = report_data(runs);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_THAT(report_page(runs), HasSubstr(data));
  EXPECT_THAT(report_page(runs), StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(report_page(runs), Not(HasSubstr("@@")));
}

}  // namespace
}  // namespace decent
