#pragma once
// Arguments of nodes in TorchScript's source.

#include <stdexcept>
#include <string>
#include <vector>

#include "decent/pt2/program/argument.h"

namespace decent::pt2 {

/// Something that has no translation; what() says why and what to do, as a text that follows "node
/// 'x' ".
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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

/// "[x, y]", "annotate(List[Tensor], [])".
std::string list_text(const std::vector<std::string>& elements, const std::string& element_type);

}  // namespace decent::pt2
