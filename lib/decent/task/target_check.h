#pragma once
// What a run would find out after its first epoch: a file that is not there, a class that the model
// does not have.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decent/core/membership.h"
#include "decent/task/task.h"

namespace decent {

/// Throws UserError naming the data set, the sample and its file for the first of `samples` whose
/// target is none of `classes`; what transforms make of targets is not looked at.
void check_classes(const DataSet& data, const Criterion& criterion, std::int64_t classes,
                   std::span<const std::int64_t> samples);

/// Looks at this worker's share of the samples of task.train and task.eval: that the file of each
/// is there, and that a target of integers is one of `classes`, where that is known. Nothing is
/// decoded. Takes at most some seconds; of data for which they do not suffice it looks at a part,
/// and says so in the lines that it returns. Samples that are left out are passed over. Throws
/// UserError naming the data set, the sample and its file.
std::vector<std::string> check_samples(const Task& task, std::optional<std::int64_t> classes,
                                       const Membership& workers, int rank);

}  // namespace decent
