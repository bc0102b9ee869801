// docs/library.md lists mistakes that one can make with the library, and their messages: every row
// is made here, and says that.

#include <ATen/ops/embedding.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "../support/launches.h"
#include "decent/comm/distributed.h"
#include "decent/core/file.h"
#include "decent/data/formats.h"
#include "decent/parallel/decent_optim_wrapper.h"
#include "decent/parallel/decentralized_parameters.h"
#include "decent/parallel/distributed_parameters.h"
#include "decent/parallel/exchange/by_machine.h"
#include "small_training.h"
#include "training.h"

namespace decent {
namespace {

using Mistake = std::function<void()>;
using testing::good_options;
using testing::Options;
using testing::plain_sgd;
using testing::small_parameter;
using testing::Trained;
using testing::Wrapped;
void construct(const NamedTensors& parameters, const Options& options = good_options(),
               std::shared_ptr<Communicator> world = make_single_worker()) {
  DecentralizedParameters(parameters, {}, std::move(world), options);
}

Mistake with(const std::function<void(Options&)>& change) {
  return [change] {
    Options options = good_options();
    change(options);
    construct({{"w", small_parameter()}}, options);
  };
}

Launch launched_with(const std::map<std::string, std::string>& variables) {
  return read_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Mistake phases(std::vector<Phase> phases, int workers) {
  return [=] { Topology(phases).phases(workers, 1); };
}

const std::string kConstructor = "DecentralizedDataParallel, DecentralizedParameters: ";
const std::string kWrapper = "DecentOptimWrapper: ";
const std::string kStep = "the wrapper's step: ";

std::map<std::string, Mistake> start_up() {
  return {
      {"initialize_distributed: the launcher set some variables only",
       [] {
         launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
       }},
      {"initialize_distributed: a variable that makes no sense",
       [] {
         launched_with({{"RANK", "5"}, {"WORLD_SIZE", "2"}});
       }},
      {"initialize_distributed: a worker that never comes (PeerLost, exit code 3)",
       [] {
         testing::turn_off_flight_recorder();
         Distributed(testing::launch_of(0, 2, testing::free_port()),
                     {.timeout = std::chrono::milliseconds(300)});
       }},
  };
}

std::map<std::string, Mistake> construction() {
  const at::Tensor shared = small_parameter();
  return {
      {kConstructor + "no update", with([](Options& o) { o.training.update = nullptr; })},
      {kConstructor + "no schedule", with([](Options& o) { o.training.schedule = nullptr; })},
      {kConstructor + "no communicator",
       [] {
         construct({{"w", small_parameter()}}, good_options(), nullptr);
       }},
      {kConstructor + ".training.clip.norm below 0",
       with([](Options& o) { o.training.clip.norm = -1; })},
      {kConstructor + ".training.ema outside [0, 1)", with([](Options& o) { o.training.ema = 1; })},
      {kConstructor + ".training.weight_decay below 0",
       with([](Options& o) { o.training.weight_decay = -1; })},
      {kConstructor + ".gamma outside [0, 1]", with([](Options& o) { o.gamma = 2; })},
      {kConstructor + ".exchange.options.slices below 1",
       with([](Options& o) { o.exchange.options.slices = 0; })},
      {kConstructor + ".exchange.options.own: modulo_range not above 0", with([](Options& o) {
         o.exchange = {"modulo2", {.own = {{"modulo_range", 0}}}};
       })},
      {kConstructor + "a modulo exchange with sgd, rmsprop or radam", with([](Options& o) {
         o.training.update = make_update("sgd");
         o.exchange = "modulo2";
       })},
      {kConstructor + ".training.bucket_mb not above 0",
       with([](Options& o) { o.training.bucket_mb = 0; })},
      {kConstructor + ".local_world_size below 0",
       with([](Options& o) { o.local_world_size = -1; })},
      {kConstructor + "an unknown topology", with([](Options& o) { o.topology = "chain"; })},
      {kConstructor + "nothing to train",
       [] {
         construct({{"w", at::ones({2})}});
       }},
      {kConstructor + "a parameter of another type",
       [] {
         construct({{"w", at::ones({2}, at::kHalf).requires_grad_()}});
       }},
      {kConstructor + "a parameter with gaps or repeated elements",
       [] {
         construct({{"w", at::ones({1}).expand({2}).requires_grad_()}});
       }},
      {kConstructor + "parameters that share memory",
       [=] {
         construct({{"a", shared.detach().requires_grad_()}, {"b", shared.detach()}});
       }},
      {"set_adaptive_factor: a number outside [0, 1]",
       [] { Trained().parallel.set_adaptive_factor(2); }},
  };
}

std::map<std::string, Mistake> averaging_gradients() {
  const std::string constructor = "DistributedDataParallel, DistributedParameters: ";
  const auto make = [](DistributedDataParallelOptions options) {
    return DistributedParameters({{"w", small_parameter()}}, {}, make_single_worker(),
                                 std::move(options));
  };
  return {
      {constructor + "another type to send in", [=] { make({.comm_dtype = "int8"}); }},
      {constructor + "a weight that is not above 0", [=] { make({.weight = 0}); }},
      {constructor + "a schedule, but no update",
       [=] { make({.training = {.schedule = constant_lr(0.1)}}); }},
      {constructor + "an update, but no schedule",
       [=] { make({.training = {.update = make_update("sgd")}}); }},
      {"get_lr: without an update (std::logic_error)", [=] { make({}).get_lr(); }},
  };
}

std::map<std::string, Mistake> steps() {
  return {
      {"backward: between global_avg() and its revert (std::logic_error)",
       [] {
         Trained one;
         one.parallel.global_avg();
         one.w.sum().backward();
       }},
      {"backward: a parameter got other memory (std::logic_error)",
       [] {
         const Trained one;
         one.w.set_data(one.w.detach().clone());
         one.w.sum().backward();
       }},
      {"resume_from: a state that lacks something",
       [] {
         Trained one;
         NamedTensors state = one.parallel.training_state();
         std::erase_if(state, [](const auto& entry) { return entry.first == "optimizer.w.step"; });
         one.parallel.resume_from(1, state);
       }},
      {"backward: a sparse gradient",
       [] {
         const Trained one;
         at::embedding(one.w, at::zeros({1}, at::kLong), -1, false, /*sparse=*/true)
             .sum()
             .backward();
       }},
      {"backward: a gradient that is not finite, while clipping (exit code 5)",
       [] {
         Options options = good_options();
         options.training.clip.norm = 1;
         const Trained one(options);
         (one.w * HUGE_VAL).sum().backward();
       }},
      {"global_avg: inside backward, e.g. in a hook (std::logic_error)",
       [] {
         Trained one;
         const at::Tensor later = one.w * 2;
         later.register_hook([&](const at::Tensor&) { one.parallel.global_avg(); });
         (later * one.early).sum().backward();  // early's gradient opens the step
       }},
      {"use_ema: without options.training.ema (std::logic_error)",
       [] { Trained().parallel.use_ema(); }},
      {"revert_global_avg: nothing to revert (std::logic_error)",
       [] { Trained().parallel.revert_global_avg(); }},
  };
}

std::map<std::string, Mistake> wrapping() {
  const auto wrap = [](std::shared_ptr<torch::optim::Optimizer> optimizer, double bucket = 25,
                       std::shared_ptr<Communicator> world = make_single_worker()) {
    DecentOptimWrapper(std::move(optimizer), "ring", std::move(world), bucket);
  };
  const at::Tensor x = small_parameter();
  return {
      {kWrapper + "no optimizer", [=] { wrap(nullptr); }},
      {kWrapper + "no communicator", [=] { wrap(plain_sgd({x}), 25, nullptr); }},
      {kWrapper + "a bucket size not above 0", [=] { wrap(plain_sgd({x}), 0); }},
      {kWrapper + "torch::optim::LBFGS",
       [=] { wrap(std::make_shared<torch::optim::LBFGS>(std::vector<at::Tensor>{x})); }},
      {kWrapper + "a parameter listed twice",
       [=] {
         wrap(plain_sgd({x, x}));
       }},
      {kWrapper + "nothing to train", [=] { wrap(plain_sgd({x.detach()})); }},
      {kWrapper + "a modulo exchange without a schedule",
       [=] {
         DecentOptimWrapper(plain_sgd({x}), "ring", make_single_worker(), {.exchange = "modulo2"});
       }},
      {kWrapper + "a modulo exchange with SGD or RMSprop",
       [=] {
         DecentOptimWrapper(plain_sgd({x}), "ring", make_single_worker(),
                            {.exchange = "modulo2", .schedule = constant_lr(1e-3)});
       }},
      {kStep + "between global_avg() and its revert (std::logic_error)",
       [] {
         Wrapped one;
         one.optimizer.global_avg();
         one.step();
       }},
      {kStep + "a group added, or a parameter unfrozen, since (std::logic_error)",
       [] {
         Wrapped one;
         one.inner->add_param_group(torch::optim::OptimizerParamGroup({small_parameter()}));
         one.step();
       }},
      {kStep + "a parameter got other memory (std::logic_error)",
       [] {
         Wrapped one;
         one.x.set_data(one.x.detach().clone());
         one.step();
       }},
      {kStep + "weights written since the last step (std::logic_error)",
       [] {
         testing::run_workers(2, [](const testing::Worker& world) {
           const at::Tensor w = small_parameter();
           const auto inner = plain_sgd({w});
           DecentOptimWrapper optimizer(inner, "ring", world);
           w.square().sum().backward();
           optimizer.step();
           inner->step();
           try {
             optimizer.step();
           } catch (const std::logic_error&) {
             optimizer.global_avg(false);  // the other worker's exchange comes to its end
             throw;
           }
           return 0;
         });
       }},
      {"the wrapper's revert_global_avg: nothing to revert (std::logic_error)",
       [] { Wrapped().optimizer.revert_global_avg(); }},
  };
}

std::map<std::string, Mistake> choices() {
  const std::string topology = "make_topology, Topology: ";
  const auto function = [](int, int) { return std::vector<Phase>{}; };
  return {
      {topology + "an unknown name", [] { make_topology("rnig", 2, 1); }},
      {topology + "a rank in no edge", phases({{{.ranks = {0, 1, 2}}}}, 4)},
      {topology + "a rank in two edges", phases({{{.ranks = {0, 1}}, {.ranks = {1, 2}}}}, 3)},
      {topology + "a rank that does not exist", phases({{{.ranks = {0, 4}}}}, 4)},
      {topology + "a weight outside (0, 1]", phases({{{.ranks = {0, 1}, .self_weight = 2}}}, 2)},
      {topology + "a number of workers that it cannot do",
       [] { make_topology("alternating-exp-ring", 6, 2); }},
      {"data_format: an unknown name", [] { data_format("npy"); }},
      {"register_data_format: an empty name",
       [] { register_data_format({.name = "", .keys = {}, .open = data_format("npz").open}); }},
      {"register_data_format: an empty function",
       [] { register_data_format({.name = "csv", .keys = {}, .open = nullptr}); }},
      {"register_data_format: a name that is taken",
       [] { register_data_format({.name = "npz", .keys = {}, .open = data_format("npz").open}); }},
      {"ExchangeChoice, .exchange: an unknown name", [] { ExchangeChoice("int8"); }},
      {"ExchangeChoice, .exchange: a function that makes none",
       [] {
         const auto none = [](const ExchangeSetup&) { return std::unique_ptr<Exchange>(); };
         ExchangeChoice(none).make({});
       }},
      {"by_machine: options of one of the two",
       [] {
         by_machine({"fp32", {.slices = 2}}, "bf16", {0});
       }},
      {"by_machine: machines of another number of workers",
       [] {
         by_machine("fp32", "bf16", {0, 0})
             .make({.communicator = make_single_worker(), .phases = {}, .buckets = {}});
       }},
      {"register_exchange: a name that is taken",
       [] { register_exchange({.name = "bf16", .make = exchange_method("fp32").make}); }},
      {"register_exchange: an empty name",
       [] { register_exchange({.name = "", .make = exchange_method("fp32").make}); }},
      {"register_exchange: an empty function",
       [] { register_exchange({.name = "int8", .make = nullptr}); }},
      {"register_topology: a name that is taken", [=] { register_topology("ring", function); }},
      {"register_topology: an empty name", [=] { register_topology("", function); }},
      {"register_topology: an empty function", [] { register_topology("star", nullptr); }},
      {"make_update: an unknown update", [] { make_update("adamW"); }},
      {"make_update: options out of range",
       [] {
         make_update("adam", {{"betas", std::array{1.5, 0.999}}});
       }},
      {"make_update: a value of another type",
       [] {
         make_update("sgd", {{"nesterov", 0.5}});
       }},
      {"make_update: an option that no optimizer has",
       [] {
         make_update("adam", {{"beta1", 0.9}});
       }},
      {"make_update: nesterov without momentum",
       [] {
         make_update("sgd", {{"nesterov", true}});
       }},
      {"make_schedule: an unknown schedule", [] { make_schedule("cosine", {}); }},
      {"make_schedule: options out of range",
       [] {
         make_schedule("cosine_warmup", {.options = {{"t_max", 0}}});
       }},
  };
}

// Rows that need another program or a compiler.
const std::set<std::string> kTestedElsewhere = {
    "initialize_distributed: workers of different builds of the library (exit code 2)",
    "initialize_distributed: a GPU is asked for where there is none",
    "initialize_distributed: NCCL, but fewer GPUs than workers",
    kConstructor + "a module by value",
};

struct Row {
  std::string mistake;  // "call: mistake"
  std::string message;
};

std::string plain(std::string cell) {
  std::erase(cell, '`');
  const std::size_t first = cell.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : cell.substr(first, cell.find_last_not_of(' ') - first + 1);
}

std::vector<Row> rows_of_the_manual() {
  const char* source = std::getenv("DECENT_SOURCE_DIR");
  const std::string manual =
      read_text(std::filesystem::path(source ? source : ".") / "docs/library.md");
  const std::size_t begin = manual.find("## Mistakes and messages");
  const std::string table = manual.substr(begin, manual.find("\n## ", begin + 1) - begin);
  std::vector<Row> rows;
  std::string call;
  const std::regex line(R"(\|([^|\n]*)\|([^|\n]*)\|([^\n]*)\|\n)");
  for (std::sregex_iterator row(table.begin(), table.end(), line), end; row != end; ++row) {
    const std::string first = plain((*row)[1]);
    if (first == "call" || first.starts_with("---")) continue;
    if (!first.empty()) call = first;
    rows.push_back({call + ": " + plain((*row)[2]), plain((*row)[3])});
  }
  return rows;
}

// ".." in what the manual says stands for anything.
void expect_says(const std::string& actual, const std::string& manual) {
  std::string_view rest = manual;
  std::size_t from = 0;
  while (!rest.empty()) {
    const std::size_t dots = std::min(rest.find(".."), rest.size());
    const std::string part = plain(std::string(rest.substr(0, dots)));
    from = actual.find(part, from);
    ASSERT_NE(from, std::string::npos) << "'" << part << "' is not in: " << actual;
    from += part.size();
    rest.remove_prefix(std::min(dots + 2, rest.size()));
  }
}

void expect_error(const Mistake& act, const Row& row) {
  const bool logic = row.mistake.find("std::logic_error") != std::string::npos;
  try {
    act();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_FALSE(logic);
    const bool lost = row.mistake.ends_with("exit code 3)");
    const bool diverged = row.mistake.ends_with("exit code 5)");
    EXPECT_EQ(error.code(), lost       ? ExitCode::peer_lost
                            : diverged ? ExitCode::diverged
                                       : ExitCode::user_error);
    expect_says(error.what(), row.message);
  } catch (const std::logic_error& error) {
    EXPECT_TRUE(logic);
    expect_says(error.what(), row.message);
  }
}

TEST(Misuse, SaysWhatTheManualSays) {
  std::map<std::string, Mistake> mistakes;
  for (auto make : {start_up, construction, averaging_gradients, steps, wrapping, choices})
    mistakes.merge(make());
  const std::vector<Row> rows = rows_of_the_manual();
  EXPECT_GT(rows.size(), 40U);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.mistake);
    if (kTestedElsewhere.contains(row.mistake)) continue;
    const auto found = mistakes.find(row.mistake);
    ASSERT_NE(found, mistakes.end()) << "no test makes this mistake";
    expect_error(found->second, row);
    mistakes.erase(found);
  }
  for (const auto& [mistake, act] : mistakes) ADD_FAILURE() << mistake << " is not in the manual";
}

}  // namespace
}  // namespace decent
