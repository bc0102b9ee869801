#pragma once
// What a run has learned of its training data, wherever it keeps it.

#include <filesystem>
#include <optional>

#include "decent/data/learned.h"
#include "decent/data/source.h"
#include "decent/report/run_folder.h"

namespace decent {

/// What `source`, of that format with the values `keys`, has learned. Throws UserError for an
/// unknown format.
LearnedData learned_of(const Source& source, const std::string& format, const Options& keys);

/// data.json of the run in that folder. Of a run of an older version, which has none, the names in
/// classes.json; nothing is known of a folder without either. Throws UserError for a damaged file.
LearnedData learned_in(const RunFolder& run);

/// The same of the checkpoint in that folder; nothing of one that an older program saved, or that
/// is not there. Throws CheckpointDamaged.
std::optional<LearnedData> learned_in_checkpoint(const std::filesystem::path& folder);

}  // namespace decent
