#pragma once
// How well a model does on each class: precision, recall, and which classes it confuses.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace decent {

/// Counts of targets of an evaluation.
struct ConfusionMatrix {
  std::vector<std::string> names;    // of the C classes
  std::vector<std::int64_t> counts;  // [C, C]: row = true class, column = predicted class
};

/// One class of the matrix. A fraction with divisor 0 is 0.
struct ClassScores {
  std::int64_t samples = 0;    // of this class
  std::int64_t predicted = 0;  // samples predicted as this class
  std::int64_t right = 0;      // samples of this class that were predicted as it
  double precision = 0;        // right / predicted
  double recall = 0;           // right / samples
  double f1 = 0;               // 2 right / (predicted + samples)
};

std::vector<ClassScores> scores_by_class(const ConfusionMatrix& matrix);

/// A table for the screen: a head, a line for each of the first `most` classes, and the number of
/// classes that are left out.
std::vector<std::string> class_lines(const ConfusionMatrix& matrix, std::size_t most);

/// Writes the scores of all classes as CSV (RFC 4180): class, samples, predicted, right, precision,
/// recall, f1. Throws WriteError.
void write_class_scores(const std::filesystem::path& file, const ConfusionMatrix& matrix);

/// Writes a row for each true class and a column for each predicted class, with names, as CSV.
/// Throws WriteError.
void write_confusion(const std::filesystem::path& file, const ConfusionMatrix& matrix);

/// Reads what write_confusion wrote; nothing if there is no such file. Throws UserError if the file
/// has other content.
std::optional<ConfusionMatrix> read_confusion(const std::filesystem::path& file);

}  // namespace decent
