#pragma once
// Stochastic depth in a program: noise that leaves out what a block adds for some samples, in
// training alone. Nothing but its form says so.

#include <vector>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// Noise that is 1 with probability p, else 0, and is scaled by 1 / p, so that the mean stays.
struct Noise {
  const Node* node = nullptr;              // bernoulli_(p), floor(rand + p)
  const Node* source = nullptr;            // of the random numbers: `node`, or rand
  double in_evaluation = 1;                // what the noise is there: nothing is left out
  std::vector<const Node*> divisors = {};  // of what it is multiplied with, by p; by 1 there
};

/// Noise of one graph, in the forms in which torchvision and timm (bernoulli_(p), divided by p) and
/// transformers write it (x / p, times floor(rand + p)).
std::vector<Noise> find_noise(const Graph& graph);

}  // namespace decent::pt2
