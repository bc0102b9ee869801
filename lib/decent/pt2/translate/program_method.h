#pragma once
// A program as a method of the module.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decent/pt2/translate/method_writer.h"
#include "decent/pt2/translate/translation.h"

namespace decent::pt2 {

/// A method without its name.
struct ProgramMethod {
  std::vector<std::pair<std::string, std::string>> inputs;  // name in the program, argument
  std::vector<std::string> types;                           // of the arguments: "Tensor", "int"
  std::string return_type;
  std::string body;  // lines below "def name(..) -> ..:"
  std::vector<NamedPayload> parameters;
  std::vector<NamedPayload> buffers;
  std::map<std::string, const Payload*> constants;
  std::vector<std::string> left_out;  // see Translation
  std::vector<std::string> refusals;  // of nodes

  /// "self, x: Tensor, n: int".
  std::string signature() const;
};

struct MethodOptions {
  std::string about;              // the beginning of messages: "model 'x.pt2'"
  std::set<std::string> written;  // buffers that this program writes, or another of the module
  std::string constants_prefix = {};
};

/// Throws UserError for problems that do not belong to a node.
ProgramMethod write_method(const ExportedProgram& program, const Analysis& analysis,
                           const MethodOptions& options);

}  // namespace decent::pt2
