#pragma once
// Checks that a model file that was written back computes the same as the model in memory.

#include <filesystem>
#include <string>

#include "decent/task/task.h"

namespace decent {

/// Opens the file and runs both models on one batch of the recipe's data, of data.eval if there is
/// one. `task.model` gets the weights as the file holds them. Returns a line for the user: how far
/// apart the outputs are, or why nothing could be compared (the data is not there). Throws
/// std::logic_error if the outputs differ.
std::string check_export(Task& task, const std::filesystem::path& file);

}  // namespace decent
