#pragma once
// Arguments of nodes in TorchScript's source.

#include <string>
#include <vector>

#include "decent/core/script_text.h"
#include "decent/pt2/program/argument.h"

namespace decent::pt2 {

/// The names in the source of the graph's values.
class NamesInSource {
 public:
  virtual ~NamesInSource() = default;
  virtual std::string value(const std::string& name) const = 0;
  /// The variable with the model's device; the device of the export does not matter.
  virtual std::string device() const = 0;
};

/// "x", "[1, n, 3]", "torch.float32". Throws Unsupported.
std::string argument_text(const Argument& argument, const NamesInSource& names);

}  // namespace decent::pt2
