#pragma once
// --predict.

#include <filesystem>
#include <memory>

#include "program.h"

namespace decent {

/// Writes what the model of `tried`, as it stands, says of its data.predict. `run`: the folder of
/// the run that the model is of, or empty; it may have names for the classes. Collective. Throws
/// SharedError.
void write_predictions(Program& program, TriedTask& tried, const std::filesystem::path& run,
                       const std::shared_ptr<Communicator>& communicator);

}  // namespace decent
