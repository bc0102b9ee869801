#pragma once
// Train and eval mode, as the report has them.

#include <string>
#include <vector>

#include "decent/pt2/report/report.h"

namespace decent::pt2 {

/// In which mode the program was exported, what follows the trainer's mode from now on, what stays
/// as it was, and what an export in eval mode has lost.
std::vector<std::string> mode_lines(const ImportFacts& facts, Detail detail);

/// Operators that draw random numbers in evaluation, too, and what to do about it; empty where
/// there is none.
std::string random_in_evaluation(const Translation& translation);

/// What of training the inference form of the program (write/inference_form.h) cannot tell any
/// more, for people: "off: stochastic depth 2; as they are: buffers mean". Empty where that is
/// nothing.
std::string lost_for_inference(const Translation& translation);

/// What an export in eval mode may have lost.
std::string lost_by_eval_mode();

}  // namespace decent::pt2
