#pragma once
// Small texts for the report.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "decent/pt2/report/report.h"

namespace decent::pt2 {

/// How many names a line has; the full report has all.
std::size_t most_names(Detail detail, std::size_t in_brief = 4);

/// "conv2d 20", the most frequent first.
std::vector<std::string> counted_names(const std::map<std::string, std::size_t>& counts);

/// Advice on how to keep what training needs.
inline constexpr const char* kExportInTrainMode = "model.train() before torch.export.export";

}  // namespace decent::pt2
