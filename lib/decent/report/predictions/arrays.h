#pragma once
// Predictions as a few large arrays. They are gathered in files without a name, since their sizes
// are known only at the end. No torch.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/report/predictions/prediction_file.h"
#include "decent/report/predictions/sample_shape.h"

namespace decent {

/// Bytes on disk, in the folder of the file that they are for. They disappear with the process.
class Spool {
 public:
  /// Throws WriteError.
  explicit Spool(std::filesystem::path beside);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /// Appends. Throws WriteError.
  void write(std::span<const std::byte> bytes);
  /// All bytes; valid as long as this object.
  std::span<const std::byte> bytes();

 private:
  std::filesystem::path beside_;
  int fd_ = -1;
  std::optional<MappedFile> mapped_;
};

class PredictionArrays {
 public:
  /// `path`: the file of predictions. Throws WriteError.
  explicit PredictionArrays(const std::filesystem::path& path);

  /// Throws WriteError, and UserError if outputs have other extents than before.
  void add(const PredictionBatch& batch);

  /// Those of output, class, probability, row and file_row that exist; valid as long as this
  /// object. Call it after the last batch.
  std::vector<TensorView> tensors();
  /// The file of each sample; empty if the data has no file names.
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
