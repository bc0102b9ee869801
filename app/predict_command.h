#pragma once
// --predict.

#include <memory>

#include "decent/train/data_warnings.h"
#include "program.h"

namespace decent {

/// Writes the predictions of the current model of `tried` for its data.predict. Collective. Throws
/// SharedError.
void write_predictions(Program& program, const Team& team, TriedTask& tried,
                       DataWarnings& warnings);

}  // namespace decent
