#pragma once
// Decentralized training as the definition reads: all workers' models side by side in one thread,
// dense mixing matrices, torch's optimizers written out. No buckets, no hooks, no communication.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include <stdexcept>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/decentralized_parameters.h"
#include "problem.h"

namespace decent::testing {

struct Settings {
  int workers = 1;
  std::vector<Phase> topology;
  double gamma = 1;
  bool adamw = true;  // else SGD with momentum 0.9
  double bucket_mb = 25;
  double weight_decay = 0.1;
  UpdateTime update_time = UpdateTime::in_backward;
  std::string exchange = "fp32";

  static double lr(std::int64_t t) { return 0.05 / std::sqrt(static_cast<double>(t)); }

  DecentralizedOptions options() const {
    return {.topology = topology,
            .training = {.update =
                             adamw ? make_update("adamw") : make_update("sgd", {{"momentum", 0.9}}),
                         .schedule = lr,
                         .weight_decay = weight_decay,
                         .bucket_mb = bucket_mb,
                         .update_time = update_time},
            .gamma = gamma,
            .exchange = exchange};
  }
};

class Reference {
 public:
  Reference(const Settings& settings, const Problem& problem)
      : settings_(settings), problem_(problem), x_(static_cast<std::size_t>(settings.workers)) {
    for (Replica& replica : x_) {
      replica.x = copies(problem.parameters());
      for (const at::Tensor& x : replica.x) {
        replica.m.push_back(at::zeros_like(x));
        replica.v.push_back(at::zeros_like(x));
        replica.updates.push_back(0);
      }
    }
  }

  std::vector<at::Tensor>& of(int rank) { return x_[static_cast<std::size_t>(rank)].x; }

  void step() {
    ++t_;
    std::vector<std::vector<at::Tensor>> gradients;
    for (int rank = 0; rank < settings_.workers; ++rank) gradients.push_back(gradient(rank));
    if (t_ > 1 && mix_next_) mix();
    mix_next_ = true;
    for (std::size_t rank = 0; rank < x_.size(); ++rank) {
      for (std::size_t p = 0; p < gradients[rank].size(); ++p) {
        if (gradients[rank][p].defined()) update(x_[rank], p, gradients[rank][p]);
      }
    }
  }

  /// Everyone goes on from the average.
  void average() {
    for (std::size_t p = 0; p < problem_.shapes.size(); ++p) {
      at::Tensor mean = at::zeros_like(x_[0].x[p]);
      for (const Replica& replica : x_) mean += replica.x[p] / settings_.workers;
      for (Replica& replica : x_) replica.x[p] = mean.clone();
    }
    mix_next_ = false;
  }

 private:
  struct Replica {
    std::vector<at::Tensor> x, m, v;
    std::vector<std::int64_t> updates;
  };

  std::vector<at::Tensor> gradient(int rank) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& x : of(rank)) leaves.push_back(x.detach().requires_grad_());
    problem_.loss(leaves, rank, t_).backward();
    std::vector<at::Tensor> result;
    for (const at::Tensor& leaf : leaves) result.push_back(leaf.grad());
    return result;
  }

  double weight(const Phase& phase, int i, int j) const {
    for (const Edge& edge : phase) {
      const auto has = [&](int rank) {
        return std::find(edge.ranks.begin(), edge.ranks.end(), rank) != edge.ranks.end();
      };
      if (!has(i)) continue;
      if (edge.ranks.size() == 1) return i == j ? 1 : 0;
      if (i == j) return edge.self_weight;
      return has(j) ? (1 - edge.self_weight) / static_cast<double>(edge.ranks.size() - 1) : 0;
    }
    throw std::logic_error("no edge");
  }

  // What the others see of a worker's weights.
  at::Tensor sent(int rank, std::size_t p) {
    const at::Tensor& x = of(rank)[p];
    const bool rounded = settings_.exchange == "bf16";
    return rounded ? x.to(at::kBFloat16).to(x.scalar_type()) : x;
  }

  void mix() {
    const auto phases = static_cast<std::int64_t>(settings_.topology.size());
    const Phase& phase = settings_.topology[static_cast<std::size_t>((t_ - 2) % phases)];
    std::vector<std::vector<at::Tensor>> mixed;
    for (int i = 0; i < settings_.workers; ++i) {
      std::vector<at::Tensor>& z = mixed.emplace_back();
      for (std::size_t p = 0; p < problem_.shapes.size(); ++p) {
        // The rows of W add up to 1.
        at::Tensor sum = of(i)[p];
        for (int j = 0; j < settings_.workers; ++j) {
          sum = sum + settings_.gamma * weight(phase, i, j) * (sent(j, p) - sent(i, p));
        }
        z.push_back(sum);
      }
    }
    for (int i = 0; i < settings_.workers; ++i) of(i) = mixed[static_cast<std::size_t>(i)];
  }

  void update(Replica& replica, std::size_t p, at::Tensor g) const {
    at::Tensor& x = replica.x[p];
    at::Tensor& m = replica.m[p];
    at::Tensor& v = replica.v[p];
    const double lr = Settings::lr(t_);
    const double decay = x.dim() >= 2 ? settings_.weight_decay : 0;
    const auto s = static_cast<double>(++replica.updates[p]);
    if (settings_.adamw) {
      x = x - lr * decay * x;
      m = 0.9 * m + (1 - 0.9) * g;
      v = 0.999 * v + (1 - 0.999) * g * g;
      const at::Tensor m_hat = m / (1 - std::pow(0.9, s));
      const at::Tensor v_hat = v / (1 - std::pow(0.999, s));
      x = x - lr * m_hat / (v_hat.sqrt() + 1e-8);
    } else {
      g = g + decay * x;
      m = 0.9 * m + g;
      x = x - lr * m;
    }
  }

  Settings settings_;
  Problem problem_;
  std::vector<Replica> x_;
  std::int64_t t_ = 0;
  bool mix_next_ = true;
};

}  // namespace decent::testing
