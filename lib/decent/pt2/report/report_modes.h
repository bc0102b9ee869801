#pragma once
// The part of the report about train and eval mode.

#include <string>
#include <vector>

#include "decent/pt2/report/report.h"

namespace decent::pt2 {

/// Lines on the mode in which the program was exported, what follows the trainer's mode from now
/// on, what stays as it was, and what an export in eval mode has lost.
std::vector<std::string> mode_lines(const ImportFacts& facts, Detail detail);

/// Operators that draw random numbers in evaluation, too, and advice; empty if there are none.
std::string random_in_evaluation(const Translation& translation);

/// The information about training that the inference form of the program (write/inference_form.h)
/// has lost, for people: "off: stochastic depth 2; as they are: buffers mean". Empty if it has lost
/// none.
std::string lost_for_inference(const Translation& translation);

/// What an export in eval mode may have lost.
std::string lost_by_eval_mode();

}  // namespace decent::pt2
