#pragma once
// Predictions as a few large arrays, which are gathered in files without a name, as their sizes are
// known at the end alone. No torch.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/report/predictions/prediction_file.h"
#include "decent/report/predictions/sample_shape.h"

namespace decent {

/// Bytes on disk, beside the file that they are for. They are gone with the process.
class Spool {
 public:
  /// Throws WriteError.
  explicit Spool(std::filesystem::path beside);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /// Appends. Throws WriteError.
  void write(std::span<const std::byte> bytes);
  /// All of them, as long as this object is there.
  std::span<const std::byte> bytes();

 private:
  std::filesystem::path beside_;
  int fd_ = -1;
  std::optional<MappedFile> mapped_;
};

class PredictionArrays {
 public:
  /// Of the file `path`. Throws WriteError.
  explicit PredictionArrays(const std::filesystem::path& path);

  /// Throws WriteError, and UserError for outputs of other extents than those before.
  void add(const PredictionBatch& batch);

  /// output, class, probability, row and file_row, those that there are, as long as this object is
  /// there. After the last batch.
  std::vector<TensorView> tensors();
  /// Of each sample; empty where the data has no such names.
  const std::vector<std::string>& files() const { return files_; }
  bool has_classes() const { return !class_extents_.empty(); }

 private:
  std::filesystem::path path_;
  Spool output_, classes_, probability_;
  std::vector<std::int64_t> rows_, file_rows_;
  std::vector<std::string> files_;
  SampleShape shape_;
  std::vector<std::int64_t> extents_;        // of all outputs; the first counts the samples
  std::vector<std::int64_t> class_extents_;  // the same; empty: no classes
};

}  // namespace decent
