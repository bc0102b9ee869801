#pragma once
// From what is known when an update runs to the template arguments of its elements.

#include <type_traits>

#include "decent/optim/coefficients.h"
#include "decent/optim/element_update.h"

namespace decent::kernels {

template <bool kMix, typename F>
DECENT_ELEMENT void choose_gradient(GradientKind gradient, const F& f) {
  using Kind = GradientKind;
  constexpr std::bool_constant<kMix> mix;
  switch (gradient) {
    case Kind::as_it_is:
      return f(mix, std::integral_constant<Kind, Kind::as_it_is>());
    case Kind::scaled:
      return f(mix, std::integral_constant<Kind, Kind::scaled>());
    case Kind::decayed:
      return f(mix, std::integral_constant<Kind, Kind::decayed>());
  }
}

/// Calls f(mix, gradient) with both as types that hold the value.
template <typename F>
DECENT_ELEMENT void choose(bool mix, GradientKind gradient, const F& f) {
  if (mix) {
    choose_gradient<true>(gradient, f);
  } else {
    choose_gradient<false>(gradient, f);
  }
}

}  // namespace decent::kernels
