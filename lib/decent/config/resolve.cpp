#include "decent/config/resolve.h"

#include <algorithm>

#include "decent/config/scalars.h"
#include "decent/config/update_options.h"
#include "decent/core/text.h"
#include "decent/optim/schedule.h"
#include "decent/optim/update_names.h"

namespace decent::config {
namespace {

// The position of `section.key`, or the start of the recipe if it is not given.
Where where_of(const Value& root, const std::string& section, const std::string& key) {
  const Entry* outer = root.find(section);
  if (outer == nullptr) return {};
  const Entry* inner = outer->value.find(key);
  return inner == nullptr ? outer->where : inner->value.where;
}

bool is_given(const Value& root, const std::string& section, const std::string& key) {
  const Entry* outer = root.find(section);
  return outer != nullptr && outer->value.find(key) != nullptr;
}

// Fills in the defaults of the row that the section names.
void resolve_options(Options& options, const NamedOptions* row, const std::string& section,
                     const Value& root) {
  if (row == nullptr) return;  // reported as a mistake already
  for (const OptionKey& key : row->keys)
    if (key.fallback && !is_given(root, section, key.name)) options.set(key.name, *key.fallback);
}

void resolve(OptimizerRecipe& optimizer, const Value& root) {
  if (!optimizer.weight_decay) optimizer.weight_decay = default_weight_decay(optimizer.name);
  resolve_options(optimizer.options, find_named(update_table(), optimizer.name), "optimizer", root);
}

// Fills in the defaults of the method.
void resolve(ParallelRecipe& parallel, const Value& root, const Names& names) {
  const MethodName* method = find_named(names.methods, parallel.method);
  if (method == nullptr || is_given(root, "parallel", "bucket_mb")) return;
  parallel.bucket_mb = method->bucket_mb;
}

void check_optimizer(const OptimizerRecipe& optimizer, const Value& root, Mistakes& mistakes) {
  for (const ParamGroupRecipe& group : optimizer.param_groups) {
    if (!group.optimizer || optimizer.name == "muon") continue;
    mistakes.add(where_of(root, "optimizer", "param_groups"), "optimizer.param_groups.optimizer",
                 "is for optimizer.name: muon, which has a rule of its own for matrices; it is " +
                     optimizer.name);
  }
  const auto conflict = update_conflict(optimizer.name, optimizer.options);
  if (!conflict) return;
  const std::string option(conflict->option);
  mistakes.add(where_of(root, "optimizer", option), "optimizer." + option,
               conflict->text("optimizer."));
}

void check_time_of_update(const Recipe& recipe, const Value& root, Mistakes& mistakes) {
  if (recipe.parallel.update != UpdateMode::in_backward) return;
  const Where where = where_of(root, "parallel", "update");
  if (needs_whole_gradient(loss_scaler_options(recipe.amp))) {
    mistakes.add(where, "parallel.update",
                 "in_backward updates weights before it is known whether a gradient overflowed, "
                 "which amp.dtype: fp16 needs; use after_backward, or amp.dtype: bf16");
  }
  if (needs_whole_gradient(clip_options(recipe.parallel))) {
    mistakes.add(where, "parallel.update",
                 "in_backward updates weights before the whole gradient is known, which "
                 "grad_clip_norm needs; use after_backward, or grad_clip_scope: bucket");
  }
}

bool needs_near_copies(const Names& names, const std::string& exchange) {
  const std::vector<std::string>& near = names.near_exchanges;
  return std::find(near.begin(), near.end(), exchange) != near.end();
}

// A method that sends something other than weights supports only some ways to send it.
void check_what_is_sent(const ParallelRecipe& recipe, const MethodName& method, const Value& root,
                        Mistakes& mistakes) {
  if (method.sends.empty()) return;
  const std::string which = "with parallel.method: " + method.name;
  if (std::find(method.sends.begin(), method.sends.end(), recipe.comm_dtype) ==
      method.sends.end()) {
    mistakes.add(where_of(root, "parallel", "comm_dtype"), "parallel.comm_dtype",
                 recipe.comm_dtype + " cannot be used " + which +
                     ", which does not exchange weights; valid: " + join(method.sends));
  }
  if (recipe.comm_dtype_within) {
    mistakes.add(where_of(root, "parallel", "comm_dtype_within"), "parallel.comm_dtype_within",
                 *recipe.comm_dtype_within + " cannot be used " + which +
                     ", which adds gradients up over all workers in one type; valid: null");
  }
  if (recipe.slices != 1) {
    mistakes.add(where_of(root, "parallel", "slices"), "parallel.slices",
                 std::to_string(recipe.slices) + " cannot be used " + which +
                     ", which sends every gradient in the step that it belongs to; valid: 1");
  }
}

// Checks that the optimizer keeps copies as close as the exchange at `key` needs.
void check_nearness(const std::string& key, const std::string& exchange,
                    const std::string& optimizer, const Value& root, const Names& names,
                    Mistakes& mistakes) {
  if (!needs_near_copies(names, exchange) || update_bounded_by_lr(optimizer)) return;
  mistakes.add(where_of(root, "parallel", key), "parallel." + key,
               exchange +
                   " sends the last bits of a weight's place on a grid that follows the "
                   "learning rate, which does not bound the steps of " +
                   optimizer + "; use optimizer.name: " + updates_bounded_by_lr() + ", or " + key +
                   ": bf16, or parallel.slices");
}

void check_exchange(const Recipe& recipe, const Value& root, const Names& names,
                    Mistakes& mistakes) {
  const MethodName* method = find_named(names.methods, recipe.parallel.method);
  if (method == nullptr) return;  // reported as a mistake already
  if (!method->averages_weights) {
    return check_what_is_sent(recipe.parallel, *method, root, mistakes);
  }
  const std::string& optimizer = recipe.optimizer.name;
  check_nearness("comm_dtype", recipe.parallel.comm_dtype, optimizer, root, names, mistakes);
  if (const auto& within = recipe.parallel.comm_dtype_within)
    check_nearness("comm_dtype_within", *within, optimizer, root, names, mistakes);
}

// Checks that the keys which a schedule needs are given; each key checks its own value. `given` is
// the mapping in which they stand.
void check_needed(const std::string& name, const Options& options, const Value* given, Where where,
                  const std::string& path, Mistakes& mistakes) {
  const NamedOptions* row = find_named(schedule_table(), name);
  if (row == nullptr) return;  // reported as a mistake already
  for (const OptionKey& key : row->keys) {
    if (key.example.empty() || !options.is_null(key.name)) continue;
    const Entry* entry = given == nullptr ? nullptr : given->find(key.name);
    if (entry != nullptr && entry->value.kind != Value::Kind::null) continue;  // reported already
    mistakes.add(where, path + "." + key.name,
                 "missing; " + name + " needs it, e.g. " + key.example);
  }
}

void check_chain(const std::vector<ScheduleLink>& chain, const Value& list, Mistakes& mistakes) {
  if (list.items.size() != chain.size()) return;  // reported as a mistake already
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const Value& item = list.items[i];
    check_needed(chain[i].name, chain[i].options, &item, item.where, "schedule.chain", mistakes);
    if (chain[i].steps || i + 1 == chain.size()) continue;
    mistakes.add(item.where, "schedule.chain",
                 "schedule " + std::to_string(i + 1) + " (" + chain[i].name +
                     ") needs steps, after which the next one begins; only the last one may be "
                     "without");
  }
}

void check_schedule(const ScheduleRecipe& schedule, const Value& root, Mistakes& mistakes) {
  const Entry* section = root.find("schedule");
  const Value* given = section == nullptr ? nullptr : &section->value;
  const Where name = where_of(root, "schedule", "name");
  check_needed(schedule.name, schedule.options, given, name, "schedule", mistakes);
  if (is_given(root, "schedule", "chain")) {
    check_chain(schedule.chain, given->find("chain")->value, mistakes);
    if (!schedule.chain.empty() && schedule.name != "chain")
      mistakes.add(where_of(root, "schedule", "chain"), "schedule.chain",
                   "is for schedule.name: chain; it is " + schedule.name);
  }
  if (schedule.name == "chain" && schedule.chain.empty() && !is_given(root, "schedule", "chain"))
    mistakes.add(name, "schedule.chain",
                 "missing; chain needs it, e.g. [{name: linear, steps: 100}, {name: constant}]");
  if (!schedule.options.is_null("warmup_epochs") &&
      schedule.options.get<std::int64_t>("warmup_steps") != 0)
    mistakes.add(where_of(root, "schedule", "warmup_epochs"), "schedule.warmup_epochs",
                 "takes the place of schedule.warmup_steps; give one of the two");
}

// A key whose value needs evaluations.
struct Watcher {
  std::string section;
  std::string key;
};

std::vector<Watcher> watchers_of(const Recipe& recipe) {
  std::vector<Watcher> watchers;
  if (recipe.train.stop) watchers.push_back({"train", "stop"});
  if (recipe.checkpoint.keep_best) watchers.push_back({"checkpoint", "keep_best"});
  if (schedule_follows_evaluations(recipe.schedule.name)) watchers.push_back({"schedule", "name"});
  return watchers;
}

void check_watchers(const Recipe& recipe, const Value& root, Mistakes& mistakes) {
  if (recipe.data.eval) return;
  for (const Watcher& each : watchers_of(recipe)) {
    mistakes.add(
        where_of(root, each.section, each.key), each.section + "." + each.key,
        "needs evaluations while the run trains, of which there are none: data.eval is null");
  }
}

void check_batches(const DataRecipe& data, const Value& root, Mistakes& mistakes) {
  if (!data.batch_tokens) return;
  if (data.sampling) {
    mistakes.add(where_of(root, "data", "batch_tokens"), "data.batch_tokens",
                 "its batches are made of samples of similar lengths, while data.sampling draws "
                 "samples by weights; leave one of the two out");
  }
  if (!data.batch_size.is_one()) {
    mistakes.add(where_of(root, "data", "batch_tokens"), "data.batch_tokens",
                 "it takes the place of data.batch_size, whose hosts and ranks would not count; "
                 "leave one of the two out");
  }
}

const Value* source_in(const Value& root, const char* key) {
  const Entry* data = root.find("data");
  const Entry* source = data == nullptr ? nullptr : data->value.find(key);
  const bool is_mapping = source != nullptr && source->value.kind == Value::Kind::mapping;
  return is_mapping ? &source->value : nullptr;
}

std::string format_of(const Value& source) {
  const Entry* format = source.find("format");
  return format == nullptr ? std::string() : to_text(format->value).value_or("");
}

}  // namespace

void inherit_source_keys(Value& root, const Names& names) {
  const Value* train = source_in(root, "train");
  const NamedOptions* format =
      train == nullptr ? nullptr : find_named(names.formats, format_of(*train));
  if (format == nullptr) return;
  const Value trained = *train;
  for (const char* key : {"eval", "predict"}) {
    const Value* source = source_in(root, key);
    if (source == nullptr || format_of(*source) != format->name) continue;
    Value& own = root.find("data")->value.find(key)->value;
    for (const OptionKey& option : format->keys) {
      const Entry* given = trained.find(option.name);
      if (given != nullptr && !option.is_place() && own.find(option.name) == nullptr)
        own.entries.push_back(*given);
    }
  }
}

void check_together(const Recipe& recipe, const Value& root, const Names& names,
                    Mistakes& mistakes) {
  check_optimizer(recipe.optimizer, root, mistakes);
  check_schedule(recipe.schedule, root, mistakes);
  check_watchers(recipe, root, mistakes);
  check_batches(recipe.data, root, mistakes);
  check_time_of_update(recipe, root, mistakes);
  check_exchange(recipe, root, names, mistakes);
}

void resolve(Recipe& recipe, const Value& root, const std::filesystem::path& file,
             const Names& names, Mistakes& mistakes) {
  if (recipe.name.empty()) {
    recipe.name = file.stem().empty() ? "recipe" : file.stem().string();
    if (!is_utf8(recipe.name)) {
      mistakes.add({}, "name", "missing, and the file's name is not valid UTF-8");
    }
  }
  if (recipe.output.empty()) recipe.output = std::filesystem::path("runs") / recipe.name;
  if (!recipe.train.epochs && !recipe.train.steps) recipe.train.epochs = 1;
  resolve(recipe.optimizer, root);
  if (!recipe.schedule.chain.empty() && !is_given(root, "schedule", "name"))
    recipe.schedule.name = "chain";
  resolve_options(recipe.schedule.options, find_named(schedule_table(), recipe.schedule.name),
                  "schedule", root);
  resolve_options(recipe.model.loss_options, find_named(names.losses, recipe.model.loss), "model",
                  root);
  resolve_options(recipe.parallel.exchange_options,
                  find_named(names.exchanges, recipe.parallel.comm_dtype), "parallel", root);
  resolve(recipe.parallel, root, names);
}

}  // namespace decent::config
