#include "decent/runfolder/data_files.h"

#include <nlohmann/json.hpp>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
void append_skipped(const std::filesystem::path& file, const std::string& data,
                    const std::map<std::int64_t, std::string>& samples) {
  using Json = nlohmann::ordered_json;
  std::string text = std::filesystem::exists(file) ? read_text(file) : "";
  for (const auto& [sample, why] : samples) {
    const Json line = {{"data", data}, {"sample", sample}, {"why", why}};
    // File names need not be UTF-8.
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_file(file, text);
}

std::vector<std::string> read_classes(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  try {
    return nlohmann::json::parse(read_text(file)).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw UserError("'" + file.string() + "': expected the names of classes, a list of strings");
  }
}

}  // namespace decent
