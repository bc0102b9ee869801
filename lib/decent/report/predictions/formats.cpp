#include "decent/report/predictions/formats.h"

#include <array>

namespace decent {
namespace {

const std::array<PredictionFormat, 5>& table() {
  static const std::array<PredictionFormat, 5> formats = {
      npz_predictions(), safetensors_predictions(), csv_predictions(), jsonl_predictions(),
      png_predictions()};
  return formats;
}

}  // namespace

std::span<const PredictionFormat> prediction_formats() { return table(); }

bool is_mask_folder(const std::filesystem::path& path) {
  return !path.empty() && !path.has_filename();
}

const PredictionFormat* find_prediction_format(const std::filesystem::path& path) {
  const std::string extension = is_mask_folder(path) ? "/" : path.extension().string();
  for (const PredictionFormat& format : prediction_formats())
    if (format.extension == extension) return &format;
  return nullptr;
}

std::string prediction_extensions() {
  std::string text;
  const std::span<const PredictionFormat> formats = prediction_formats();
  for (std::size_t i = 0; i < formats.size(); ++i) {
    if (i > 0) text += i + 1 < formats.size() ? ", " : " or ";
    text += formats[i].extension;
  }
  return text;
}

}  // namespace decent
