#pragma once
// How a model does on each class: precision and recall, and which class it takes for which other.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace decent {

/// Counts of targets of an evaluation.
struct ConfusionMatrix {
  std::vector<std::string> names;    // of the C classes
  std::vector<std::int64_t> counts;  // [C, C]: of each true class, how often each was predicted
};

/// One class of it. A share whose divisor is 0 is 0.
struct ClassScores {
  std::int64_t samples = 0;    // of this class
  std::int64_t predicted = 0;  // that were taken for it
  std::int64_t right = 0;      // both
  double precision = 0;        // right / predicted
  double recall = 0;           // right / samples
  double f1 = 0;               // 2 right / (predicted + samples)
};

std::vector<ClassScores> scores_by_class(const ConfusionMatrix& matrix);

/// A table for the screen: a head, a line for each of the first `most` classes, and how many are
/// left out.
std::vector<std::string> class_lines(const ConfusionMatrix& matrix, std::size_t most);

/// The same for all classes as CSV (RFC 4180): class, samples, predicted, right, precision, recall,
/// f1. Throws WriteError.
void write_class_scores(const std::filesystem::path& file, const ConfusionMatrix& matrix);

/// A row for each true class, a column for each predicted one, with their names. Throws WriteError.
void write_confusion(const std::filesystem::path& file, const ConfusionMatrix& matrix);

/// What write_confusion wrote; nothing where there is no such file. Throws UserError where it is
/// something else.
std::optional<ConfusionMatrix> read_confusion(const std::filesystem::path& file);

}  // namespace decent
