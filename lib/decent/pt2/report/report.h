#pragma once
// What an import understood of a file, as text for people.

#include <string>
#include <vector>

#include "decent/pt2/archive/read.h"
#include "decent/pt2/translate/translation.h"

namespace decent::pt2 {

struct ImportFacts {
  const Archive& archive;
  const Programs& programs;
  const Translation& translation;
};

enum class Detail {
  brief,  // about 20 lines: groups with some names
  full,   // a line for each tensor, and the TorchScript of the program
};

/// Lines: where the file comes from, operators, tensors, which of them are tied, inputs, how train
/// and eval mode differ and what the export has lost of that.
std::vector<std::string> import_report(const ImportFacts& facts, Detail detail);

/// Those of these lines that matter before a run: gradients and what runs in training alone, where
/// the file does not have them. `losses_are_known`: the file itself says what it has lost.
std::vector<std::string> training_notes(const ImportFacts& facts, bool losses_are_known);

}  // namespace decent::pt2
