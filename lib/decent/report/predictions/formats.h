#pragma once
// The formats of prediction files, a row each.

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/report/predictions/prediction_file.h"

namespace decent {

/// A row of the table.
struct PredictionFormat {
  std::string_view extension;  // of the file's name, with its dot; "/" for a folder
  /// Begins a file. `class_names`: of the classes 0, 1, ..; further classes have no names. Throws
  /// WriteError.
  std::unique_ptr<PredictionFile> (*open)(const std::filesystem::path& path,
                                          const std::vector<std::string>& class_names) = nullptr;
};

std::span<const PredictionFormat> prediction_formats();

/// Whether the path ends in a slash: predictions become a folder of masks.
bool is_mask_folder(const std::filesystem::path& path);

/// The format with the extension of the file's name, or of folders; null if there is none.
const PredictionFormat* find_prediction_format(const std::filesystem::path& path);

/// ".npz, .csv or ..".
std::string prediction_extensions();

// The rows that come with the program.
PredictionFormat npz_predictions();          // npz.cpp
PredictionFormat safetensors_predictions();  // safetensors.cpp
PredictionFormat csv_predictions();          // csv.cpp
PredictionFormat jsonl_predictions();        // jsonl.cpp
PredictionFormat png_predictions();          // png.cpp

}  // namespace decent
