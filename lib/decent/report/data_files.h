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

/// The names in such a file; none where it is not there. Throws UserError where it is damaged.
std::vector<std::string> read_classes(const std::filesystem::path& file);

/// The names as a file would have them: those of folders may be no UTF-8.
std::vector<std::string> written_classes(const std::vector<std::string>& names);

}  // namespace decent
