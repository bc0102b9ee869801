#pragma once
// How an import understood a file, as text for people.

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

/// Lines on the origin of the file, operators, tensors, tied ones among them, inputs, how train and
/// eval mode differ, and what of this difference the export has lost.
std::vector<std::string> import_report(const ImportFacts& facts, Detail detail);

/// The lines that matter before a run: gradients and parts that only run in training, if the file
/// lacks them. `losses_are_known`: the file itself says what it has lost.
std::vector<std::string> training_notes(const ImportFacts& facts, bool losses_are_known);

/// Operators that draw random numbers in evaluation, too, and advice; empty if there are none.
std::string random_in_evaluation(const Translation& translation);

/// The information about training that the inference form of the program (write/inference_form.h)
/// has lost, for people: "off: stochastic depth 2; as they are: buffers mean". Empty if it has lost
/// none.
std::string lost_for_inference(const Translation& translation);

/// What an export in eval mode may have lost.
std::string lost_by_eval_mode();

}  // namespace decent::pt2
