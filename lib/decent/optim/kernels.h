#pragma once
// The CPU's inner loops of the bucket updates, internal to this room. Each runs over n contiguous
// elements of one parameter.

#include <cstdint>

#include "decent/optim/coefficients.h"

namespace decent::kernels {

// x, m, v, b, a: read and written; r (received) may be null: no mixing. Arrays do not overlap.
void mix(float* x, const float* r, float self, float other, std::int64_t n);
void mix(double* x, const double* r, double self, double other, std::int64_t n);
void sgd(float* x, const float* r, const float* g, float* b, const Sgd<float>& c, std::int64_t n);
void sgd(double* x, const double* r, const double* g, double* b, const Sgd<double>& c,
         std::int64_t n);
void adam(float* x, const float* r, const float* g, float* m, float* v, const Adam<float>& c,
          std::int64_t n);
void adam(double* x, const double* r, const double* g, double* m, double* v, const Adam<double>& c,
          std::int64_t n);

void accum_adam(float* x, const float* r, const float* g, float* m, float* v, float* a,
                const AccumAdam<float>& c, std::int64_t n);
void accum_adam(double* x, const double* r, const double* g, double* m, double* v, double* a,
                const AccumAdam<double>& c, std::int64_t n);

/// Sum of g[i]^2, added up in 16 lanes of double, whatever the instruction set.
double sum_of_squares(const float* g, std::int64_t n);
double sum_of_squares(const double* g, std::int64_t n);

}  // namespace decent::kernels
