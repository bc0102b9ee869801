#pragma once
// Finds at the start what would only show after the first epoch: a missing file, or a class that
// the model does not have. Also finds the sample that makes a batch fail.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decent/core/membership.h"
#include "decent/task/task.h"

namespace decent {

/// Throws UserError naming the data set, the sample and its file for the first of `samples` whose
/// target is none of `classes`. Ignores transforms of targets.
void check_classes(const DataSet& data, const Criterion& criterion, std::int64_t classes,
                   std::span<const std::int64_t> samples);

/// Throws `error`, which the model or the loss threw for `batch`, read from `samples` of `data`,
/// with the data set's name, and with the sample and its file if the error is about a class that
/// the model does not have or a number beyond a table. `step`: given for later batches than the
/// first; the message then also names their samples.
[[noreturn]] void throw_for_batch(const Task& task, const DataSet& data,
                                  std::span<const std::int64_t> samples, const Batch& batch,
                                  const UserError& error,
                                  std::optional<std::int64_t> step = std::nullopt);

/// Looks at this worker's share of the samples of task.train and task.eval: the file of each must
/// exist, and a target of integers must be one of `classes`, if known. No image is decoded, but
/// masks are. Takes at most some seconds. If they do not suffice it looks at a part of the data,
/// and says so in the lines that it returns. Skips samples that are left out. Throws UserError
/// naming the data set, the sample and its file.
std::vector<std::string> check_samples(const Task& task, std::optional<std::int64_t> classes,
                                       const Member& member);

}  // namespace decent
