#include "decent/report/class_table.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "decent/core/csv_cell.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"

namespace decent {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

// The rows of a CSV file (RFC 4180).
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  bool quoted = false, new_row = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (new_row) rows.push_back({""});
    new_row = false;
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      new_row = true;
    } else {
      rows.back().back() += c;
    }
  }
  return rows;
}

std::int64_t count_in(const std::string& cell) {
  std::int64_t count = -1;
  const auto [end, failed] = std::from_chars(cell.data(), cell.data() + cell.size(), count);
  const bool whole = failed == std::errc() && end == cell.data() + cell.size() && count >= 0;
  if (!whole) throw UserError("'" + cell + "' is no count");
  return count;
}

// Class names may be names of folders, whose control characters would act on the terminal.
std::string on_screen(const std::string& name) {
  std::string shown = name;
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return shown;
}

}  // namespace

std::vector<ClassScores> scores_by_class(const ConfusionMatrix& matrix) {
  const std::size_t classes = matrix.names.size();
  std::vector<ClassScores> all(classes);
  for (std::size_t truth = 0; truth < classes; ++truth) {
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      const std::int64_t count = matrix.counts[truth * classes + predicted];
      all[truth].samples += count;
      all[predicted].predicted += count;
      if (truth == predicted) all[truth].right = count;
    }
  }
  for (ClassScores& each : all) {
    each.precision = share(each.right, each.predicted);
    each.recall = share(each.right, each.samples);
    each.f1 = share(2 * each.right, each.predicted + each.samples);
  }
  return all;
}

std::vector<std::string> class_lines(const ConfusionMatrix& matrix, std::size_t most) {
  const std::vector<ClassScores> scores = scores_by_class(matrix);
  const std::size_t shown = std::min(most, scores.size());
  std::size_t width = std::string_view("class").size();
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, matrix.names[i].size());
  std::vector<std::string> lines = {fmt::format("  {:<{}}  {:>9}  {:>9}  {:>9}  {:>9}", "class",
                                                width, "samples", "precision", "recall", "f1")};
  for (std::size_t i = 0; i < shown; ++i) {
    const ClassScores& each = scores[i];
    lines.push_back(fmt::format("  {:<{}}  {:>9}  {:>9}  {:>9}  {:>9}", on_screen(matrix.names[i]),
                                width, each.samples, percent(each.precision), percent(each.recall),
                                percent(each.f1)));
  }
  if (shown < scores.size()) {
    const auto left = static_cast<std::int64_t>(scores.size() - shown);
    lines.push_back("  .. and " + counted(left, "more class", "more classes"));
  }
  return lines;
}

void write_class_scores(const std::filesystem::path& file, const ConfusionMatrix& matrix) {
  const std::vector<ClassScores> scores = scores_by_class(matrix);
  std::string text = "class,samples,predicted,right,precision,recall,f1\n";
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const ClassScores& each = scores[i];
    text += fmt::format("{},{},{},{},{},{},{}\n", csv_cell(matrix.names[i]), each.samples,
                        each.predicted, each.right, each.precision, each.recall, each.f1);
  }
  write_file(file, text);
}

void write_confusion(const std::filesystem::path& file, const ConfusionMatrix& matrix) {
  std::string text = "true \\ predicted";
  for (const std::string& name : matrix.names) text += "," + csv_cell(name);
  text += "\n";
  const std::size_t classes = matrix.names.size();
  for (std::size_t truth = 0; truth < classes; ++truth) {
    text += csv_cell(matrix.names[truth]);
    for (std::size_t i = 0; i < classes; ++i)
      text += "," + std::to_string(matrix.counts[truth * classes + i]);
    text += "\n";
  }
  write_file(file, text);
}

std::optional<ConfusionMatrix> read_confusion(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  const auto rows = rows_of(read_text(file));
  ConfusionMatrix matrix;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != rows.size())
      throw UserError("row " + std::to_string(i) + " has not as many columns as there are rows");
    matrix.names.emplace_back(without_mark(rows[i][0]));
    for (std::size_t j = 1; j < rows[i].size(); ++j) matrix.counts.push_back(count_in(rows[i][j]));
  }
  return matrix;
}

}  // namespace decent
