#include "decent/model/fast_math.h"

#include <ATen/Context.h>

namespace decent {
namespace {

void set(bool matrices, bool convolutions, bool benchmark) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(matrices);
  context.setAllowTF32CuDNN(convolutions);
  context.setBenchmarkCuDNN(benchmark);
}

}  // namespace

void set_fast_math(bool on) { set(on, on, on); }

ExactMath::ExactMath()
    : matrices_(at::globalContext().allowTF32CuBLAS()),
      convolutions_(at::globalContext().allowTF32CuDNN()),
      benchmark_(at::globalContext().benchmarkCuDNN()) {
  set_fast_math(false);
}

ExactMath::~ExactMath() { set(matrices_, convolutions_, benchmark_); }

}  // namespace decent
