#pragma once
// The predictions of a model, and files of them. No torch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace decent {

/// Elements of one batch, row-major; the first extent counts the samples.
template <class T>
struct BatchColumn {
  std::vector<std::int64_t> shape;
  std::span<const T> values;
};

/// The predictions for a batch of samples, in their order.
struct PredictionBatch {
  std::vector<std::int64_t> rows;       // numbers of the samples in the data, ascending
  std::vector<std::string> files = {};  // of each sample; empty if the data has no file names
  std::vector<std::int64_t> file_rows =
      {};  // of each sample in its file; empty: the same as `rows`
  BatchColumn<float> output;
  // Of each class decision; both empty if the loss has no classes.
  std::optional<BatchColumn<std::int64_t>> classes = {};
  std::optional<BatchColumn<float>> probability = {};
};

/// A file of predictions that is being written. It appears under its name whole or not at all.
class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  /// Appends a batch, which has the same columns as the batches before. Throws WriteError, and
  /// UserError if outputs have other extents and the format needs the same.
  virtual void add(const PredictionBatch& batch) = 0;
  /// Makes the file appear, and replaces an existing one. Throws WriteError.
  virtual void finish() = 0;
};

}  // namespace decent
