#pragma once
// Parameters that an optimizer treats as a whole, not element by element.

#include <cstdint>
#include <optional>

namespace decent {

/// The shape of such a parameter; without rows: it is none.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool by_columns = false;  // in memory; otherwise by rows

  bool is_one() const { return rows > 0; }
};

/// What muon does with the gradient of a matrix. With the scaled gradient g, the momentum m and
/// mu = `momentum`: m <- mu m + (1 - mu) g; then the direction is NS(m), or with nesterov
/// NS(mu m + (1 - mu) g), where NS are Newton-Schulz iterations.
struct MatrixStep {
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t iterations = 5;
};

/// The arrays of one matrix during such a step: [rows * cols] each, in the matrix's order.
struct MatrixArrays {
  Matrix matrix;
  const void* grad = nullptr;
  void* momentum = nullptr;
  void* direction = nullptr;  // is written
};

/// What adafactor does with a parameter; rules/adafactor.h has the formula.
struct FactoredStep {
  double share = 1;  // of the squared gradient in the running means
  double rho = 0;    // min(lr, 1 / sqrt(t))
  std::optional<double> eps1 = {};
  double eps2 = 1e-3;
  double d = 1;
};

}  // namespace decent
