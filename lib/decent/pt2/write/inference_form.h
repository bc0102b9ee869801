#pragma once
// Converts a program to its form for inference, without the parts that only training runs.

#include <optional>
#include <string>
#include <string_view>

#include "decent/pt2/analyse/mode.h"
#include "decent/pt2/analyse/writes.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The record of a program for both modes, whose text is `json`, in the form that the trainer
/// evaluates: flags of training are false, the dropout of attention is 0, the noise of stochastic
/// depth has its value of evaluation, and no node writes into a buffer or a parameter: it returns
/// the unchanged tensor, or writes into a copy. Nothing if the program already has that form.
std::optional<std::string> inference_form(const ExportedProgram& program, const ModeSurvey& modes,
                                          const BufferWrites& writes, std::string_view json);

}  // namespace decent::pt2
