#pragma once
// Files about the data in the output folder: skipped.jsonl, the samples that could not be read and
// were left out (data.on_error: skip), and the classes.json of older versions.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace decent {

/// Adds a line for each of `samples`, which maps numbers of samples of `data` ("data.train") to
/// error messages: {"data": "data.train", "sample": 7, "why": ".."}. Throws WriteError.
void append_skipped(const std::filesystem::path& file, const std::string& data,
                    const std::map<std::int64_t, std::string>& samples);

/// Reads classes.json, a list of the names of classes 0, 1, .., which runs of older versions have
/// instead of data.json. Empty if there is no such file. Throws UserError if it is damaged.
std::vector<std::string> read_classes(const std::filesystem::path& file);

}  // namespace decent
