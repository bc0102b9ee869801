#pragma once
// Finds stochastic depth in a program: noise that drops a block's contribution for some samples, in
// training only. It can only be recognised by its form.

#include <vector>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// Noise that is 1 with probability p, else 0, and is scaled by 1 / p, so that the mean stays.
struct Noise {
  const Node* node = nullptr;              // bernoulli_(p), floor(rand + p)
  const Node* source = nullptr;            // makes the random numbers: `node`, or rand
  double in_evaluation = 1;                // the value of the noise there: nothing is dropped
  std::vector<const Node*> divisors = {};  // divide the other factor by p; in evaluation by 1
};

/// The noise of one graph, in the form of torchvision and timm (bernoulli_(p), divided by p) and
/// that of transformers (x / p, times floor(rand + p)).
std::vector<Noise> find_noise(const Graph& graph);

}  // namespace decent::pt2
