#pragma once
// Finds the nodes of a program that behave differently in training and evaluation. Python's
// `self.training` is a constant in an exported program, so the switches have to be found again.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "decent/pt2/analyse/schemas.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The mode of the module when it was exported, as far as the program tells.
enum class ExportedMode {
  train,    // a switch is on; switches that are off were put into eval mode on purpose
  eval,     // there are switches, and all are off
  unknown,  // there are no switches
};

/// A place where a program says train or eval.
struct ModeSwitch {
  enum class Kind {
    flag,         // an argument that is true in training: dropout's `train`
    probability,  // an argument that is 0 in evaluation: dropout_p of attention
    noise,        // the noise of stochastic depth, which `node` makes
    divisor,      // the divisor that keeps its mean: an argument that is 1 in evaluation
  };
  const Node* node = nullptr;
  Kind kind = Kind::flag;
  std::string argument = {};  // of the node; empty for noise
  double in_evaluation = 1;   // for noise: its replacement
  bool is_on = false;
  bool follows = false;     // whether the trainer's mode decides from now on
  std::string module = {};  // whose mode it is: "layer1.bn" if it has running statistics
};

struct ModeSurvey {
  ExportedMode mode = ExportedMode::unknown;
  std::vector<ModeSwitch> switches;
  std::map<const Node*, std::size_t> places = {};  // in `switches`, of those that follow the mode
  std::set<const Node*> noise_sources = {};        // nodes whose random numbers a switch uses

  /// nullptr if the node has no switch that follows the mode.
  const ModeSwitch* following(const Node& node) const;
};

ModeSurvey survey_modes(const ExportedProgram& program);

/// As survey_modes, for one of two programs, one for train and one for eval: no switch follows the
/// mode.
ModeSurvey survey_fixed_modes(const ExportedProgram& program);

/// The nodes with random numbers but without a switch: they are random in evaluation, too.
std::vector<const Node*> find_random(const ExportedProgram& program, const ModeSurvey& survey,
                                     const OperatorSchemas& schemas);

}  // namespace decent::pt2
