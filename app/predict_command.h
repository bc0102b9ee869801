#pragma once
// --predict.

#include <memory>

#include "decent/train/data_warnings.h"
#include "program.h"

namespace decent {

/// Writes what the model of `tried`, as it stands, says of its data.predict. Collective. Throws
/// SharedError.
void write_predictions(Program& program, TriedTask& tried,
                       const std::shared_ptr<Communicator>& communicator, DataWarnings& warnings);

}  // namespace decent
