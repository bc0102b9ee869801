#pragma once
// A program for inference: what training alone does is gone from it.

#include <optional>
#include <string>
#include <string_view>

#include "decent/pt2/analyse/buffer_writes.h"
#include "decent/pt2/analyse/mode.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The record of a program that is for both modes, whose text is `json`, in the form that the
/// trainer evaluates: flags of training are false, the dropout of attention is 0, the noise of
/// stochastic depth is what it is in evaluation, and a node that writes into a buffer or a
/// parameter gives what it would have written into. Nothing where the program is in that form
/// already.
std::optional<std::string> inference_form(const ExportedProgram& program, const ModeSurvey& modes,
                                          const BufferWrites& writes, std::string_view json);

}  // namespace decent::pt2
