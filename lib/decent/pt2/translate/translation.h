#pragma once
// An exported program as one TorchScript module: source text that a person can read, and the
// tensors to which it refers. Nothing here needs LibTorch; model/pt2/module.h makes the module.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "decent/pt2/analyse/mode.h"
#include "decent/pt2/analyse/schemas.h"
#include "decent/pt2/analyse/writes.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// A tensor under its name in the module, "layer1.0.conv1.weight", which is also its name in
/// Python.
struct NamedPayload {
  std::string name;
  const Payload* payload = nullptr;
};

struct ModuleSource {
  /// Methods of the module, forward last.
  std::string methods;
  std::vector<NamedPayload> parameters;  // in the order of the program; tied ones under each name
  std::vector<NamedPayload> buffers;
  /// The value of "CONSTANTS.<name>".
  std::map<std::string, const Payload*> constants;
};

/// The input of a translation: one program for both modes, or one for each.
struct Programs {
  const ExportedProgram* train = nullptr;
  const ExportedProgram* eval = nullptr;  // nullptr: `train` is for both

  bool are_two() const { return eval != nullptr; }
};

struct Translation {
  ModuleSource module;
  /// The tensors of all programs that become parameters and buffers of the module, under its names.
  std::vector<NamedPayload> stored;
  /// The names of the user's inputs in the program, and of forward's arguments for them.
  std::vector<std::pair<std::string, std::string>> arguments;
  ModeSurvey modes;     // of Programs::train
  BufferWrites writes;  // of Programs::train
  /// Nodes that are random in evaluation, too, if one program is for both modes.
  std::vector<const Node*> random = {};
  /// Results that are no tensors and are left out of the dictionary that forward returns.
  std::vector<std::string> left_out;
};

/// Throws UserError, which begins with `about` ("model 'x.pt2'") and lists the parts that cannot be
/// translated.
Translation translate(const Programs& programs, const OperatorSchemas& schemas,
                      const std::string& about);

}  // namespace decent::pt2
