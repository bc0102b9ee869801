#pragma once
// What PyTorch declares of its operators, as far as a translation needs it. Who has LibTorch
// answers (model/pt2/schemas.h), so that nothing here includes it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "decent/pt2/analyse/target.h"

namespace decent::pt2 {

struct SchemaArgument {
  std::string name;
  bool is_float = false;    // takes a float only, where a file may say 0 for 0.0
  bool is_written = false;  // the operator writes into the tensor
  bool is_scalar = false;   // takes a number of any type (Scalar)
  bool is_tensor = false;   // takes a tensor, where a file may give a number
};

struct OperatorSchema {
  std::vector<SchemaArgument> arguments;
  bool is_random = false;  // takes numbers from the random generator
  /// For each result the argument whose memory it is, or may be.
  std::vector<std::optional<std::size_t>> results_in;

  /// nullptr where there is none of that name.
  const SchemaArgument* find(const std::string& argument) const {
    for (const SchemaArgument& each : arguments) {
      if (each.name == argument) return &each;
    }
    return nullptr;
  }
};

class OperatorSchemas {
 public:
  virtual ~OperatorSchemas() = default;
  /// nullptr where PyTorch has no such operator. Valid as long as this object.
  virtual const OperatorSchema* find(const Target& target) const = 0;
};

}  // namespace decent::pt2
