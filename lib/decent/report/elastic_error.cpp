#include "decent/report/elastic_error.h"

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {

void write_elastic_error(const std::string& message) {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0') return;
  // torchrun shows py_callstack, indented, and regards the earliest timestamp as the first failure.
  const nlohmann::json details = {{"py_callstack", message},
                                  {"timestamp", std::to_string(std::time(nullptr))}};
  const nlohmann::json error = {{"message", {{"message", message}, {"extraInfo", details}}}};
  // Paths in messages need not be UTF-8.
  try {
    write_file(path, error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } catch (const WriteError&) {
    // Ignored, as the header says.
  }
}

}  // namespace decent
