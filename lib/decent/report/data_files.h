#pragma once
// What the output folder tells of the data: skipped.jsonl, the samples that could not be read and
// were left out (data.on_error: skip), and the classes.json of older versions.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace decent {

/// Adds a line for each sample of `data` ("data.train"), whose number and error message `samples`
/// has: {"data": "data.train", "sample": 7, "why": ".."}. Throws WriteError.
void append_skipped(const std::filesystem::path& file, const std::string& data,
                    const std::map<std::int64_t, std::string>& samples);

/// classes.json, a list of the names of classes 0, 1, .., which runs of older versions have in
/// place of data.json: the names; none where it is not there. Throws UserError where it is damaged.
std::vector<std::string> read_classes(const std::filesystem::path& file);

}  // namespace decent
