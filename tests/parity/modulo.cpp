// Trains weights towards targets with an exchange of test_modulo.py's choice, N workers as threads,
// and writes what they saw and sent. Started by test_modulo.py:
//
//     parity_modulo FOLDER
//
// FOLDER/cases.json is a list of cases, described in modulo_cases.py;
// FOLDER/<case>.input.safetensors has the first weights, "start.<parameter>" [workers, numel], and
// "target.<parameter>" [workers, period, numel]. Worker i descends half the squared distance to its
// target of step t mod period. Every worker writes FOLDER/<case>.<rank>.safetensors: its last
// weights, "end.<parameter>", and, of a case that is recorded, what records.h names, what
// pre_average was shown ("local", "received") and "wrap_share.<step>", NaN where there is none.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sum.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "../unit/support/workers.h"
#include "decent/core/membership.h"
#include "decent/parallel/decentralized_parameters.h"
#include "decent/parallel/storage.h"
#include "records.h"

namespace decent::parity {
namespace {

using nlohmann::json;
using testing::Worker;

std::vector<Phase> phases_of(const json& description) {
  std::vector<Phase> phases;
  for (const json& edges : description) {
    Phase& phase = phases.emplace_back();
    for (const json& edge : edges)
      phase.push_back({edge["ranks"].get<std::vector<int>>(), edge["weight"].get<double>()});
  }
  return phases;
}

Schedule schedule_of(const json& description) {
  return cosine_warmup({.lr = description["lr"],
                        .warmup_steps = description["warmup_steps"],
                        .t_max = description["t_max"],
                        .eta_min = description["eta_min"],
                        .warmup_decay = description["warmup_decay"]});
}

std::unique_ptr<BucketUpdate> update_of(const json& description) {
  const json& betas = description["betas"];
  return make_update(description["optimizer"].get<std::string>(),
                     {{"betas", std::array{betas[0].get<double>(), betas[1].get<double>()}}});
}

DecentralizedOptions options_of(const json& description) {
  const json& range = description["modulo_range"];
  const double weight_decay = description["weight_decay"];
  std::map<std::string, double> scales;
  for (const json& parameter : description["parameters"])
    scales[parameter["name"]] = parameter["lr_scale"];
  return {
      .topology = phases_of(description["phases"]),
      .training = {.update = update_of(description),
                   .schedule = schedule_of(description["schedule"]),
                   .settings =
                       [=](const std::string& name, const at::Tensor&) {
                         return ParameterSettings{.weight_decay = weight_decay,
                                                  .lr_scale = scales.at(name)};
                       },
                   .bucket_mb = description["bucket_mb"].get<double>()},
      .gamma = description["gamma"],
      .exchange = {
          description["exchange"].get<std::string>(),
          {.slices = description["slices"],
           .own = {{"modulo_range", range.is_null() ? kNull : OptionValue(range.get<double>())}}}}};
}

Worker recording(const json& description, const Worker& world,
                 const std::shared_ptr<Record>& record) {
  return std::make_shared<RecordingCommunicator>(world, record, everyone(world->size()).ranks,
                                                 description["phases"].size());
}

void record_all(DecentralizedOptions& options, const json& description, Worker& world,
                const std::shared_ptr<Record>& record) {
  world = recording(description, world, record);
  options.training.update = std::make_shared<RecordingUpdate>(update_of(description), record);
  options.pre_average = [record](const PreAverage& now) {
    record->add("local", now.bucket, now.local);
    record->add("received", now.bucket, now.received);
  };
}

// One case on one worker.
class Run {
 public:
  Run(const json& description, Named input, Worker world)
      : description_(description), input_(std::move(input)), world_(std::move(world)) {
    for (const json& parameter : description["parameters"]) {
      const std::string name = parameter["name"];
      weights_.emplace_back(name, own("start." + name).clone().requires_grad_());
    }
  }

  Named train() {
    DecentralizedOptions options = options_of(description_);
    const bool recorded = description_["recorded"];
    Worker world = world_;
    if (recorded) record_all(options, description_, world, record_);
    DecentralizedParameters parallel(weights_, {}, world, options);
    const std::int64_t first = description_["first"];
    record_->begin_step(first);
    if (first > 0) begin_apart(parallel, first);
    Named result;
    for (std::int64_t t = first + 1; t <= first + description_["steps"].get<std::int64_t>(); ++t) {
      record_->begin_step(t);
      loss(t).backward();
      if (recorded) record_->add_wrap_share(parallel.wrap_share());
    }
    for (const auto& [name, x] : weights_) result["end." + name] = x.detach().clone();
    parallel.global_avg(false);
    result.insert(record_->tensors().begin(), record_->tensors().end());
    return result;
  }

 private:
  at::Tensor own(const std::string& name) const { return input_.at(name)[world_->rank()]; }

  // Rank 0's weights are everyone's by now.
  void begin_apart(DecentralizedParameters& parallel, std::int64_t first) {
    const at::NoGradGuard no_grad;
    for (auto& [name, x] : weights_) x.copy_(own("start." + name));
    parallel.resume_from(first, parallel.training_state());
  }

  at::Tensor loss(std::int64_t t) const {
    at::Tensor sum = at::scalar_tensor(0, at::kDouble);
    for (const auto& [name, x] : weights_) {
      const at::Tensor targets = own("target." + name);
      sum = sum + at::sum((x - targets[t % targets.size(0)]).square()) / 2;
    }
    return sum;
  }

  const json& description_;
  Named input_;
  Worker world_;
  NamedTensors weights_;
  std::shared_ptr<Record> record_ = std::make_shared<Record>();
};

// The exchange by itself, without an update and with buckets that need not be padded. Parameters
// are buckets; before the mixing of step t they get the values "value.<parameter>" [workers,
// period, numel] of t mod period.
class DirectRun {
 public:
  DirectRun(const json& description, Named input, const Worker& world)
      : description_(description), input_(std::move(input)), rank_(world->rank()) {
    const DecentralizedOptions options = options_of(description);
    ExchangeSetup setup{.communicator = recording(description, world, record_),
                        .phases = phases_of(description["phases"]),
                        .buckets = {},
                        .schedule = options.training.schedule};
    for (const json& parameter : description["parameters"]) {
      names_.push_back(parameter["name"]);
      setup.buckets.push_back(value(names_.size() - 1, 0).clone());
      setup.lr_scales.push_back({{.lr_scale = parameter["lr_scale"]}});
    }
    buckets_ = setup.buckets;
    exchange_ = options.exchange.make(setup);
    exchange_->set_gamma(options.gamma);
  }

  Named mix_often() {
    const std::int64_t first = description_["first"];
    for (std::int64_t t = first + 1; t <= first + description_["steps"].get<std::int64_t>(); ++t) {
      record_->begin_step(t - 1);
      for (std::size_t b = 0; b < buckets_.size(); ++b) {
        buckets_[b].copy_(value(b, t));
        if (t > 1) exchange_->start(b, t - 1);
      }
      record_->begin_step(t);
      for (std::size_t b = 0; b < buckets_.size(); ++b) mix_bucket(b);
      record_->add_wrap_share(exchange_->wrap_share());
    }
    return record_->tensors();
  }

 private:
  at::Tensor value(std::size_t bucket, std::int64_t t) const {
    const at::Tensor values = input_.at("value." + names_[bucket])[rank_];
    return values[t % values.size(0)];
  }

  void mix_bucket(std::size_t b) {
    const at::Tensor& x = buckets_[b];
    if (const auto received = exchange_->peek(b)) {
      record_->add("local", b, x);
      record_->add("received", b, received->others);
    }
    const Mixing mixing = exchange_->wait(b);
    record_->add("x", b, x);
    mix(x.data_ptr(), x.numel(), scalar_of(x), mixing, kernels_of(x));
    record_->add("z", b, x);
  }

  const json& description_;
  Named input_;
  int rank_;
  std::vector<std::string> names_;
  std::shared_ptr<Record> record_ = std::make_shared<Record>();
  std::vector<at::Tensor> buckets_;
  std::unique_ptr<Exchange> exchange_;
};

void run_on(const Worker& world, const json& cases, const std::filesystem::path& folder) {
  for (const json& description : cases) {
    if (description["workers"] != world->size()) continue;
    const std::string name = description["name"];
    const Named input = read_tensors(folder / (name + ".input.safetensors"));
    const Named result = description["direct"].get<bool>()
                             ? DirectRun(description, input, world).mix_often()
                             : Run(description, input, world).train();
    write_tensors(folder / (name + "." + std::to_string(world->rank()) + ".safetensors"), result);
  }
}

void run_all(const std::filesystem::path& folder) {
  const json cases = json::parse(std::ifstream(folder / "cases.json"));
  std::set<int> numbers;
  for (const json& description : cases) numbers.insert(description["workers"].get<int>());
  for (const int workers : numbers) {
    testing::run_workers(workers, [&](const Worker& world) {
      run_on(world, cases, folder);
      return testing::Nothing();
    });
  }
}

}  // namespace
}  // namespace decent::parity

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: parity_modulo FOLDER\n";
    return 2;
  }
  try {
    decent::parity::run_all(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
