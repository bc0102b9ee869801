#pragma once
// Which nodes of a program train and evaluate in different ways. Python's `self.training` is a
// constant in an exported program, so that the switches have to be found again.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "decent/pt2/analyse/schemas.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// In which mode the module was when it was exported, as far as the program tells.
enum class ExportedMode {
  train,    // a switch is on; one that is off was put into eval mode on purpose
  eval,     // there are switches, and all are off
  unknown,  // there is none
};

/// A place where a program says train or eval.
struct ModeSwitch {
  enum class Kind {
    flag,         // an argument that is true in training: dropout's `train`
    probability,  // one that is 0 in evaluation: dropout_p of attention
    noise,        // of stochastic depth: what node makes; see noise.h
    divisor,      // what scales its mean: an argument that is 1 in evaluation
  };
  const Node* node = nullptr;
  Kind kind = Kind::flag;
  std::string argument = {};  // of the node; empty for noise
  double in_evaluation = 1;   // of noise: what takes its place
  bool is_on = false;
  bool follows = false;     // whether the trainer's mode decides from now on
  std::string module = {};  // whose mode it is: "layer1.bn" where that has running statistics
};

struct ModeSurvey {
  ExportedMode mode = ExportedMode::unknown;
  std::vector<ModeSwitch> switches;
  std::map<const Node*, std::size_t> places = {};  // of those that follow the mode, in `switches`
  std::set<const Node*> noise_sources = {};        // nodes whose random numbers a switch uses

  /// nullptr where the node has no switch that follows the mode.
  const ModeSwitch* following(const Node& node) const;
};

ModeSurvey survey_modes(const ExportedProgram& program);

/// As survey_modes, for a program that is one of two, for train and for eval: none of its switches
/// follows the mode.
ModeSurvey survey_fixed_modes(const ExportedProgram& program);

/// Nodes with random numbers that no switch belongs to: they are random in evaluation, too.
std::vector<const Node*> find_random(const ExportedProgram& program, const ModeSurvey& survey,
                                     const OperatorSchemas& schemas);

}  // namespace decent::pt2
