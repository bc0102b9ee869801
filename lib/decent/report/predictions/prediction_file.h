#pragma once
// What a model says of samples, and files of it. No torch.

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

/// What is said of a batch of samples, in their order.
struct PredictionBatch {
  std::vector<std::int64_t> rows;       // numbers of the samples in the data, ascending
  std::vector<std::string> files = {};  // of each sample; empty where the data has no such names
  std::vector<std::int64_t> file_rows =
      {};  // of each sample in its file; empty: the same as `rows`
  BatchColumn<float> output;
  // Of each class decision; both empty where the loss has no classes.
  std::optional<BatchColumn<std::int64_t>> classes = {};
  std::optional<BatchColumn<float>> probability = {};
};

/// A file of predictions that is being written. It appears under its name whole or not at all.
class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  /// Appends a batch, which has the columns of those before. Throws WriteError, and UserError for
  /// outputs of other extents where the format needs the same.
  virtual void add(const PredictionBatch& batch) = 0;
  /// Makes the file appear, in place of one that is there. Throws WriteError.
  virtual void finish() = 0;
};

}  // namespace decent
