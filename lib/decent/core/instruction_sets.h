#pragma once
// The instruction sets for which loops of the CPU are compiled: AVX-512 (x86-64-v4), AVX2 with FMA
// (v3), or the baseline for processors from before 2013, where std::fma is an exact but slow call.
//
// A loop is a struct with a static function `run`, marked DECENT_ELEMENT so that it is compiled
// into each set's own `run`. Files with such loops are compiled without contraction of products
// and sums, so that all sets give the same bits.

#include <vector>

namespace decent {

struct Baseline {
  static bool here() { return true; }

  template <class Loop, typename... Arguments>
  static auto run(const Arguments&... arguments) {
    return Loop::run(arguments...);
  }
};

#ifdef __x86_64__
struct Avx2 {
  static bool here() { return __builtin_cpu_supports("x86-64-v3"); }

  template <class Loop, typename... Arguments>
  __attribute__((target("arch=x86-64-v3"))) static auto run(const Arguments&... arguments) {
    return Loop::run(arguments...);
  }
};

struct Avx512 {
  static bool here() { return __builtin_cpu_supports("x86-64-v4"); }

  template <class Loop, typename... Arguments>
  __attribute__((target("arch=x86-64-v4"))) static auto run(const Arguments&... arguments) {
    return Loop::run(arguments...);
  }
};
#endif

/// What `make.operator()<InstructionSet>()` returns for each set that the processor has, narrowest
/// first.
template <typename Table, typename Make>
std::vector<Table> for_instruction_sets_here(const Make& make) {
  std::vector<Table> all;
  const auto add = [&]<class InstructionSet>() {
    if (InstructionSet::here()) all.push_back(make.template operator()<InstructionSet>());
  };
  add.template operator()<Baseline>();
#ifdef __x86_64__
  add.template operator()<Avx2>();
  add.template operator()<Avx512>();
#endif
  return all;
}

}  // namespace decent
