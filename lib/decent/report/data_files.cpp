#include "decent/report/data_files.h"

#include <nlohmann/json.hpp>

#include "decent/core/file.h"

namespace decent {

void append_skipped(const std::filesystem::path& file, const std::string& data,
                    const std::map<std::int64_t, std::string>& samples) {
  using Json = nlohmann::ordered_json;
  std::string text = std::filesystem::exists(file) ? read_text(file) : "";
  for (const auto& [sample, why] : samples) {
    const Json line = {{"data", data}, {"sample", sample}, {"why", why}};
    // File names may be no UTF-8.
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_file(file, text);
}

void write_classes(const std::filesystem::path& file, const std::vector<std::string>& names) {
  write_file(
      file,
      nlohmann::json(names).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace decent
