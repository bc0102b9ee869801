#pragma once
// Low-rank adapters (LoRA, arXiv 2106.09685) of the weights of a module, whatever file it is from.
//
// In each forward, everything in the module that holds an adapted weight W holds the sum
// W + (alpha / rank) B A instead, which autograd computes from A and B. So the module's code stays
// as it is, and the gradient of a sum lives only until those of its A and B are computed.

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace decent {

struct AdapterOptions {
  std::int64_t rank = 8;
  double alpha = 16;
  std::uint64_t seed = 0;  // of the first values of A
};

/// The names of the adapter of a weight.
inline std::string lora_a_name(const std::string& weight) { return weight + ".lora_A"; }
inline std::string lora_b_name(const std::string& weight) { return weight + ".lora_B"; }
inline bool is_of_adapter(const std::string& name) {
  return name.ends_with(lora_a_name("")) || name.ends_with(lora_b_name(""));
}

/// One weight with its adapter. The weight counts as a matrix [out, in], where `in` is the product
/// of all dimensions but the first, as those of a convolution.
struct Adapter {
  std::string name;   // of the weight
  at::Tensor weight;  // does not train
  at::Tensor a;       // [rank, in]
  at::Tensor b;       // [out, rank]
  /// Each puts a tensor where the module holds the weight.
  std::vector<std::function<void(const at::Tensor&)>> places;
};

/// Not thread-safe.
class Adapters {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  /// Adapts `weights`, parameters of `module` with at least two dimensions. As in PEFT, A begins
  /// uniform in (-1 / sqrt(in), 1 / sqrt(in)) and B with zeros, both in float32 (float64 for such a
  /// weight), so that nothing changes at first. Throws UserError if the module holds a part of a
  /// weight or another view of it, which could not become a part of the sum.
  Adapters(const torch::jit::Module& module, const NamedTensors& weights,
           const AdapterOptions& options);

  const std::vector<Adapter>& all() const { return all_; }
  double scale() const { return scale_; }

  /// Lets the module read the sums. A call that fails changes nothing.
  void apply();
  /// Lets it read the weights themselves again.
  void remove();

  /// Adds the adapters to the weights in memory, so that everything that reads a weight reads the
  /// sum; apply() then does nothing.
  void merge();
  /// Restores the weights bit for bit.
  void unmerge() noexcept;
  bool is_merged() const { return !originals_.empty(); }

 private:
  at::Tensor sum_of(const Adapter& adapter) const;

  std::vector<Adapter> all_;
  double scale_;
  std::vector<at::Tensor> originals_;  // of merged weights
};

/// While it lives, the module computes with adapters. `adapters` may be null.
class AppliedAdapters {
 public:
  explicit AppliedAdapters(Adapters* adapters) : adapters_(adapters) {
    if (adapters_ != nullptr) adapters_->apply();
  }
  AppliedAdapters(const AppliedAdapters&) = delete;
  AppliedAdapters& operator=(const AppliedAdapters&) = delete;
  ~AppliedAdapters() {
    if (adapters_ != nullptr) adapters_->remove();
  }

 private:
  Adapters* adapters_;
};

/// While it lives, the adapters are a part of the weights: for evaluations, and for files that hold
/// the model. `adapters` may be null, or merged already.
class MergedAdapters {
 public:
  explicit MergedAdapters(Adapters* adapters)
      : adapters_(adapters == nullptr || adapters->is_merged() ? nullptr : adapters) {
    if (adapters_ != nullptr) adapters_->merge();
  }
  MergedAdapters(const MergedAdapters&) = delete;
  MergedAdapters& operator=(const MergedAdapters&) = delete;
  ~MergedAdapters() {
    if (adapters_ != nullptr) adapters_->unmerge();
  }

 private:
  Adapters* adapters_;
};

}  // namespace decent
