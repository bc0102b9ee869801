#pragma once
// The result of forward: the program's results in the form that they have in the model's Python.

#include <string>
#include <vector>

#include "decent/pt2/program/program.h"
#include "decent/pt2/translate/method_writer.h"

namespace decent::pt2 {

struct ProgramResults {
  std::string type;                   // "Dict[str, Tensor]"
  std::string expression;             // "{\"logits\": linear}"
  std::vector<std::string> left_out;  // of a dictionary: "loss (None)"
};

/// A tensor if there is one result; a dictionary if Python has one, or a class with named fields;
/// else a tuple. Nested results become flat, with names such as "hidden.0". Throws Unsupported.
ProgramResults write_results(const std::vector<Argument>& outputs, const TreeSpec& spec,
                             const ValueScope& scope);

}  // namespace decent::pt2
