#pragma once
// What a run would find out after its first epoch: a file that is not there, a class that the model
// does not have; and which sample it is, where a batch fails.

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

/// Throws what is to be said of `error`, which the model or the loss made of `batch`, read from
/// `samples` of `data`: the data set, and the sample with its file where the error is of a class
/// that the model does not have or of a number beyond a table. `step`: of a batch that is not the
/// first, whose samples are named too.
[[noreturn]] void throw_for_batch(const Task& task, const DataSet& data,
                                  std::span<const std::int64_t> samples, const Batch& batch,
                                  const UserError& error,
                                  std::optional<std::int64_t> step = std::nullopt);

/// Looks at this worker's share of the samples of task.train and task.eval: that the file of each
/// is there, and that a target of integers is one of `classes`, where that is known. Nothing is
/// decoded. Takes at most some seconds; of data for which they do not suffice it looks at a part,
/// and says so in the lines that it returns. Samples that are left out are passed over. Throws
/// UserError naming the data set, the sample and its file.
std::vector<std::string> check_samples(const Task& task, std::optional<std::int64_t> classes,
                                       const Membership& workers, int rank);

}  // namespace decent
