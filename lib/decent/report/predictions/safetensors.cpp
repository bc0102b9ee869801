// Predictions as a safetensors file. Lists of texts are metadata, written as JSON.

#include "decent/core/safetensors.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "decent/core/file.h"
#include "decent/report/predictions/arrays.h"
#include "decent/report/predictions/formats.h"

namespace decent {
namespace {

// Readers take headers of up to 100 MB, but a header longer than this is slow to read.
constexpr std::size_t kMostText = std::size_t{1} << 20;

std::string list_text(const std::vector<std::string>& texts) {
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class SafetensorsPredictions final : public PredictionFile {
 public:
  SafetensorsPredictions(const std::filesystem::path& path, std::vector<std::string> names)
      : file_(path), arrays_(path), names_(std::move(names)) {}

  void add(const PredictionBatch& batch) override { arrays_.add(batch); }

  void finish() override {
    const std::vector<TensorView> tensors = arrays_.tensors();
    file_.write(safetensors_header(tensors, metadata()));
    for (const TensorView& tensor : tensors)
      file_.write({reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
    file_.commit();
  }

 private:
  std::map<std::string, std::string> metadata() const {
    std::map<std::string, std::string> texts;
    if (arrays_.has_classes() && !names_.empty()) texts["class_names"] = list_text(names_);
    if (arrays_.files().empty()) return texts;
    std::string files = list_text(arrays_.files());
    if (files.size() <= kMostText) texts["file"] = std::move(files);
    return texts;
  }

  AtomicFile file_;
  PredictionArrays arrays_;
  std::vector<std::string> names_;
};

std::unique_ptr<PredictionFile> open_safetensors(const std::filesystem::path& path,
                                                 const std::vector<std::string>& names) {
  return std::make_unique<SafetensorsPredictions>(path, names);
}

}  // namespace

PredictionFormat safetensors_predictions() {
  return {.extension = ".safetensors", .open = open_safetensors};
}

}  // namespace decent
