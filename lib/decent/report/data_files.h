#pragma once
// What the output folder tells of the data: skipped.jsonl, the samples that could not be read and
// were left out (data.on_error: skip), and classes.json.

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

/// classes.json: a list of the names of classes 0, 1, .. Throws WriteError.
void write_classes(const std::filesystem::path& file, const std::vector<std::string>& names);

}  // namespace decent
