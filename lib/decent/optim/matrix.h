#pragma once
// Parameters that an optimizer treats as matrices, not element by element.

#include <cstdint>

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

}  // namespace decent
