// Every key of the recipe once with a value that it takes, a wrong type, a value out of range, and
// a misspelling.

#include <gmock/gmock.h>

#include "decent/config/schema.h"
#include "support.h"

namespace decent {
namespace {

using test::kSmallest;
using test::parse;
using test::refusal_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct KeyCase {
  std::string key;
  std::string good;
  std::string wrong_type;
  std::string out_of_range;  // empty: the type has no bounds
};

void PrintTo(const KeyCase& key, std::ostream* out) { *out << key.key; }

const std::vector<KeyCase>& key_cases() {
  static const std::vector<KeyCase> cases = {
      {"name", "n", "[a]", "''"},
      {"seed", "9223372036854775807", "1.5", "-1"},
      {"output", "out/x", "{a: b}", "''"},
      {"model.path", "a.pt", "[a]", "''"},
      {"model.inputs", "[a, b]", "x", "[]"},
      {"model.target", "t", "[y]", "''"},
      {"model.output", "logits", "[a]", "''"},
      {"model.loss", "huber", "3", ""},
      {"model.label_smoothing", "0.1", "'0'", "1.1"},
      {"model.ignore_index", "0", "null", "9223372036854775808"},
      {"model.class_dim", "1", "1.0", ""},
      {"model.loss_weights", "[0.5, 2]", "{a: 1}", "[-1]"},
      {"model.memory_format", "contiguous", "true", ""},
      {"model.weights", "w.safetensors", "[a]", "''"},
      {"model.weights_ignore", "['fc.*']", "a", "['']"},
      {"model.weights_rename", "{backbone.: '', a: b}", "[a]", ""},
      {"model.freeze", "['layer.*']", "a", "['']"},
      {"model.unfreeze", "['bias.*']", "null", "[null]"},
      {"model.freeze_statistics", "true", "1", ""},
      {"model.lora", "{match: ['*.weight'], train: [head.*]}", "x", "{match: [a], rank: 0}"},
      {"model.export_mode", "train", "true", ""},
      {"model.device", "cuda", "0", ""},
      {"model.fast_math", "true", "tf32", ""},
      {"data.train", "{format: builtin, name: d, split: test}", "digits", "{}"},
      {"data.eval", "null", "digits", "[]"},
      {"data.predict", "null", "digits", "[]"},
      {"data.batch_size", "1", "3.0", "0"},
      {"data.batch_tokens", "4096", "many", "0"},
      {"data.eval_batch_size", "1", "\"3\"", "-3"},
      {"data.shuffle", "False", "1", ""},
      {"data.sampling", "{weights: w, replacement: false}", "class_balanced",
       "{replacement: true}"},
      {"data.prefetch", "0", "true", "1025"},
      {"data.threads", "4", "1e0", "0"},
      {"data.on_error", "skip", "[fail]", "stop"},
      {"data.transforms", "[{crop: 3}]", "crop", "[crops]"},
      {"data.eval_transforms", "[{crop: 3}]", "crop", "[crops]"},
      {"data.export_transforms", "true", "1", ""},
      {"train.epochs", "null", "one", "0"},
      {"train.steps", "1", "0x10", "-1"},
      {"train.grad_accumulation", "2", "null", "0"},
      {"train.stop", "{metric: accuracy, patience: 2}", "loss", "{patience: 0}"},
      {"optimizer.name", "accum_adam", "null", ""},
      {"optimizer.lr", ".5", "'1'", "0"},
      {"optimizer.lr_scaling", "sqrt", "0.5", ""},
      {"optimizer.betas", "[0, 0.5]", "0.9", "[0.9, 1]"},
      {"optimizer.eps", "0", "tiny", "-1e-8"},
      {"optimizer.momentum", "0", "[0.9]", "1"},
      {"optimizer.nesterov", "true", "yes", ""},
      {"optimizer.accum_iter", "8", "4.0", "0"},
      {"optimizer.alpha", "0.9", "'0.9'", "1"},
      {"optimizer.lr_decay", "0.01", "null", "-1"},
      {"optimizer.initial_accumulator_value", "0.1", "[0.1]", "-0.1"},
      {"optimizer.momentum_decay", "0", "slow", "-4e-3"},
      {"optimizer.ns_steps", "6", "5.5", "0"},
      {"optimizer.adjust_lr_fn", "original", "1", "none"},
      {"optimizer.beta2_decay", "-0.5", "null", "0.8"},
      {"optimizer.eps1", "1e-30", "tiny", "-1"},
      {"optimizer.eps2", "0", "null", "-1e-3"},
      {"optimizer.d", "2", "[1]", "0.5"},
      {"optimizer.weight_decay", "0.01", "true", "-0.1"},
      {"optimizer.ema", "0.999", "true", "1"},
      {"optimizer.param_groups", "[{match: a, lr_scale: 2}]", "{match: a}", "[{weight_decay: 1}]"},
      {"schedule.name", "constant", "{a: b}", ""},
      {"schedule.warmup_steps", "0", "1e2", "-1"},
      {"schedule.warmup_epochs", "0.5", "few", "-1"},
      {"schedule.warmup_decay", "1", "x", "1.5"},
      {"schedule.t_max", "1", "all", "0"},
      {"schedule.eta_min", "0", "null", "-1"},
      {"schedule.start_factor", "1", "null", "0"},
      {"schedule.end_factor", "0", "x", "1.5"},
      {"schedule.total_iters", "null", "1.5", "0"},
      {"schedule.step_size", "7", "[7]", "0"},
      {"schedule.gamma", "null", "x", "0"},
      {"schedule.total_steps", "null", "1.5", "0"},
      {"schedule.pct_start", "0.5", "null", "1.5"},
      {"schedule.anneal_strategy", "linear", "2", ""},
      {"schedule.div_factor", "10", "null", "0"},
      {"schedule.final_div_factor", "10", "null", "0"},
      {"schedule.three_phase", "true", "1", ""},
      {"schedule.timescale", "4000", "1.5", "0"},
      {"schedule.decay_steps", "10", "1.5", "0"},
      {"schedule.decay_type", "cosine", "1", "sqrt"},
      {"schedule.metric", "accuracy", "[loss]", "loss2"},
      {"schedule.mode", "max", "1", "high"},
      {"schedule.factor", "0.5", "half", "1"},
      {"schedule.patience", "0", "1.5", "-1"},
      {"schedule.threshold", "0", "null", "-0.1"},
      {"schedule.threshold_mode", "abs", "true", "absolute"},
      {"schedule.cooldown", "2", "null", "-1"},
      {"schedule.min_lr", "1e-6", "low", "-1"},
      {"schedule.eps", "0", "null", "-1"},
      {"schedule.chain", "[{name: linear, steps: 5}, {name: constant}]", "linear", "[{steps: 5}]"},
      {"parallel.method", "none", "{a: b}", ""},
      {"parallel.topology", "{phases: [[{ranks: [0, 1], weight: .5}]]}", "3", "[]"},
      {"parallel.topology_otherwise", "ring", "3", ""},
      {"parallel.local_world_size", "2", "2.5", "0"},
      {"parallel.bucket_mb", "0.001", "big", "0"},
      {"parallel.gamma", "0", "null", "1.01"},
      {"parallel.grad_clip_norm", "0.5", "off", "-1"},
      {"parallel.grad_clip_scope", "bucket", "1", ""},
      {"parallel.update", "after_backward", "[]", ""},
      {"parallel.average_buffers", "FALSE", "'true'", ""},
      {"parallel.comm_dtype", "fp32", "16", ""},
      {"parallel.comm_dtype_within", "bf16", "16", ""},
      {"parallel.slices", "4", "1.5", "0"},
      {"parallel.modulo_range", "12", "auto", "0"},
      {"parallel.link_mbit", "0.5", "200M", "0"},
      {"parallel.backend", "nccl", "mpi", ""},
      {"parallel.timeout_s", "5.5", "1m", "0"},
      {"parallel.stall_s", "5.5", "1m", "0"},
      {"parallel.farewell_s", "5.5", "1m", "-1"},
      {"amp.dtype", "off", "false", ""},
      {"amp.init_scale", "65536", "2^16", "0"},
      {"amp.growth_factor", "2", "null", "1"},
      {"amp.backoff_factor", ".5", "[]", "1"},
      {"amp.growth_interval", "2000", "2e3", "0"},
      {"eval.every_steps", "5", "5.5", "0"},
      {"eval.every_epochs", "null", "never", "0"},
      {"eval.at_start", "true", "0", ""},
      {"eval.metrics", "[loss, mae]", "loss", "[lost]"},
      {"checkpoint.every_steps", "100", "x", "0"},
      {"checkpoint.every_epochs", "null", "1.0", "0"},
      {"checkpoint.keep", "2", "null", "0"},
      {"checkpoint.keep_best", "accuracy", "[loss]", "speed"},
      {"checkpoint.background", "false", "on", ""},
      {"checkpoint.allow_missing", "true", "no", ""},
      {"log.every_steps", "1", "null", "0"},
      {"log.progress", "bar", "3", ""},
      {"log.tensorboard", "false", "2", ""},
      {"log.track", "mlflow", "3", "neptune"},
      {"log.trace", "[1, 2]", "3", "[0, 2]"},
  };
  return cases;
}

class EveryKey : public testing::TestWithParam<KeyCase> {
 protected:
  std::string set(const std::string& value) const { return GetParam().key + "=" + value; }
  // A message about this key alone, on one line.
  void expect_refused(const std::string& value, const std::string& because) const {
    const std::string message = refusal_of(set(value));
    EXPECT_THAT(message, StartsWith("--set " + set(value).substr(0, 100)));
    EXPECT_THAT(message, HasSubstr(": " + GetParam().key));
    EXPECT_THAT(message, HasSubstr(because));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
};

// Some look at evaluations.
TEST_P(EveryKey, TakesAGoodValue) {
  const std::string eval = "data.eval={format: builtin, name: digits, split: test}";
  EXPECT_NO_THROW(parse(kSmallest, {eval, set(GetParam().good)}));
}

TEST_P(EveryKey, RefusesAWrongType) { expect_refused(GetParam().wrong_type, "expected "); }

TEST_P(EveryKey, RefusesAMapping) {
  EXPECT_THAT(refusal_of(set("{zz: {zz: [zz]}}")), HasSubstr(": " + GetParam().key));
}

TEST_P(EveryKey, RefusesAValueOutOfRange) {
  if (!GetParam().out_of_range.empty()) expect_refused(GetParam().out_of_range, "expected ");
}

TEST_P(EveryKey, NamesTheNearestKey) {
  const std::string& key = GetParam().key;
  const std::string name = key.substr(key.find('.') + 1);
  const std::string message = refusal_of(key + "q=1");
  EXPECT_EQ(message,
            "--set " + key + "q=1: " + key + "q: unknown key; did you mean '" + name + "'?");
}

std::string test_name(const testing::TestParamInfo<KeyCase>& info) {
  std::string name = info.param.key;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recipe, EveryKey, testing::ValuesIn(key_cases()), test_name);

TEST(Keys, TheCasesCoverTheSchemaInItsOrder) {
  std::vector<std::string> schema;
  for (const config::KeyInfo& key : config::recipe_keys(test::kNames)) schema.push_back(key.name);
  std::vector<std::string> covered;
  for (const KeyCase& key : key_cases()) covered.push_back(key.key);
  EXPECT_EQ(covered, schema);
}

// Also shows that every default in recipe.h is a value that the key takes.
TEST(Keys, ADefaultThatIsGivenChangesNothing) {
  const Recipe smallest = parse(kSmallest);
  for (const config::KeyInfo& key : config::recipe_keys(test::kNames)) {
    if (key.fallback.empty() || key.fallback.starts_with('<') || key.fallback == "runs/<name>")
      continue;
    EXPECT_EQ(parse(kSmallest, {key.name + "=" + key.fallback}), smallest) << key.name;
  }
}

TEST(Keys, EveryKeyIsDocumented) {
  for (const config::KeyInfo& key : config::recipe_keys(test::kNames))
    EXPECT_NE(key.meaning, "") << key.name;
}

// Only keys whose default may be null take it.
TEST(Keys, NullIsAcceptedWhereItIsTheDefault) {
  for (const config::KeyInfo& key : config::recipe_keys(test::kNames)) {
    const bool nullable = key.type.ends_with(" or null");
    if (nullable) {
      EXPECT_NO_THROW(parse(kSmallest, {key.name + "=null"})) << key.name;
    } else {
      EXPECT_THAT(refusal_of(key.name + "=~"), HasSubstr(key.name + ": expected")) << key.name;
    }
  }
}

}  // namespace
}  // namespace decent
