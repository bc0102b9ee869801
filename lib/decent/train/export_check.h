#pragma once
// Whether a model file that was written back computes what the model in memory does.

#include <filesystem>
#include <string>

#include "decent/task/task.h"

namespace decent {

/// Opens the file and evaluates one batch of the recipe's data, data.eval if there is one, both
/// ways. `task.model` gets the weights as the file holds them. Gives a line for the user: how far
/// the outputs are apart, or why nothing could be compared (the data is not there). Throws
/// std::logic_error where the outputs differ.
std::string check_export(Task& task, const std::filesystem::path& file);

}  // namespace decent
