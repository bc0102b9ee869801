#pragma once
// muon: torch.optim.Muon for parameters with two dimensions, AdamW for all others. At an update of
// a matrix of A rows and B columns
//
//     m <- mu m + (1 - mu) g
//     u = mu m + (1 - mu) g with nesterov, else m
//     x <- x - lr wd x - adjusted(lr) NS(u)
//     adjusted(lr) = 0.2 lr sqrt(max(A, B)) (match_rms_adamw), lr sqrt(max(1, A / B)) (original)
//
// where NS are Newton-Schulz iterations from u = U S V^T towards U V^T. Keller Jordan,
// https://kellerjordan.github.io/posts/muon; match_rms_adamw: arXiv 2502.16982.

#include <algorithm>
#include <array>
#include <string>

#include "decent/optim/rules/adam.h"

namespace decent::rules {

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t ns_steps = 5;
  std::string adjust_lr_fn = "match_rms_adamw";
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
};

struct Muon {
  using Options = MuonOptions;
  static constexpr std::array kOptions = {
      momentum<Options>(),
      Option<Options>{"nesterov", "Nesterov's momentum, which needs a momentum above 0",
                      &Options::nesterov},
      Option<Options>{"ns_steps", "Newton-Schulz iterations", &Options::ns_steps, within(1, 99)},
      Option<Options>{.name = "adjust_lr_fn",
                      .meaning = "Factor for the learning rate of a matrix of A rows and B "
                                 "columns: 0.2 sqrt(max(A, B)), which makes steps as large as "
                                 "AdamW's, or sqrt(max(1, A / B))",
                      .member = &Options::adjust_lr_fn,
                      .texts = {"match_rms_adamw", "original"}},
      betas<Options>(),
      eps<Options>()};
  static constexpr std::array kNames = {Name{.name = "muon", .weight_decay = 0.1}};
  // Of a matrix: the momentum, and the direction NS(u), which is computed before the loops run.
  static constexpr std::array<std::string_view, 2> kStates = {"exp_avg", "exp_avg_sq"};
  static constexpr std::size_t kStatesOfWhole = 2;
  // The elements of a direction have a root mean square of about 1 / sqrt(max(A, B)): with
  // match_rms_adamw the step's have 0.2 lr. step_scale() has the size for other adjustments.
  static constexpr bool kStepBoundedByLr = true;

  // Adam's. The step of a matrix has fewer: x arrives with 3, keep and product 5; step and product
  // 2; difference 6.
  static constexpr int kRoundings = Adam::kRoundings;

  template <typename T>
  struct Coefficients {
    Adam::Coefficients<T> adam;
    T step;      // adjusted(lr)
    bool whole;  // Adam's form; the other one is that of matrices
  };

  static MatrixStep matrix_step(const Options& options) {
    return {options.momentum, options.nesterov, options.ns_steps};
  }

  static double adjustment(std::string_view adjust_lr_fn, const Matrix& matrix) {
    const auto rows = static_cast<double>(matrix.rows), cols = static_cast<double>(matrix.cols);
    if (adjust_lr_fn == "original") return std::sqrt(std::max(1.0, rows / cols));
    return 0.2 * std::sqrt(std::max(rows, cols));
  }

  /// How large the steps of such a parameter are in those of match_rms_adamw, or of AdamW.
  static double step_scale(const Options& options, const Matrix& matrix) {
    if (!matrix.is_one()) return 1;
    return adjustment(options.adjust_lr_fn, matrix) / adjustment("match_rms_adamw", matrix);
  }

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    const AdamOptions adam{options.betas, options.eps, /*decoupled_weight_decay=*/true};
    const bool is_matrix = step.matrix.is_one();
    const double factor = is_matrix ? adjustment(options.adjust_lr_fn, step.matrix) : 0;
    return {.adam = Adam::coefficients<T>(adam, step),
            .step = static_cast<T>(step.lr * factor),
            .whole = !is_matrix};
  }

  template <bool kWhole, typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& m, T& v, const Coefficients<T>& c) {
    if constexpr (kWhole) {
      Adam::element(x, g, m, v, c.adam);
    } else {
      x = c.adam.keep * x - c.step * v;
    }
  }
};

}  // namespace decent::rules
