#pragma once
// metrics.jsonl as columns, for pages that draw it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace decent {

/// Columns of numbers by name, all of one length. NaN: the line lacks the field, or the number was
/// not finite.
class MetricsColumns {
 public:
  /// Adds a line; known columns that it lacks get NaN. Names beyond the first kMaxColumns are left
  /// out: a file with more is not a run's.
  void add(const std::vector<std::pair<std::string, double>>& line);

  std::size_t size() const { return size_; }
  /// Null if there is no such column.
  const std::vector<double>* find(const std::string& name) const;
  const std::vector<std::pair<std::string, std::vector<double>>>& all() const { return columns_; }

 private:
  static constexpr std::size_t kMaxColumns = 64;
  std::vector<double>* column(const std::string& name, std::size_t guess);

  std::vector<std::pair<std::string, std::vector<double>>> columns_;
  std::size_t size_ = 0;
};

/// An evaluation that is not one of the run's own curve: --eval-only after the run, or on other
/// data.
struct LaterEvaluation {
  std::vector<std::pair<std::string, double>> figures;
  std::string source;      // "": the run's own data
  std::string checkpoint;  // "": the run's own
};

/// A resume with other workers; see ResumeMetrics.
struct WrittenResume {
  std::int64_t step = 0;
  std::int64_t workers = 0;
  std::int64_t before = 0;
  std::vector<std::int64_t> lost;
  double pause_s = 0;  // NaN: not known
};

struct WrittenEnd {
  std::string status;
  std::int64_t step = 0;
  double wall_s = 0;
  bool stopped_early = false;
};

struct MetricsTable {
  MetricsColumns train;  // steps increase
  MetricsColumns eval;   // steps increase
  std::vector<LaterEvaluation> later;
  std::vector<WrittenResume> resumes;
  std::vector<WrittenEnd> ends;  // the last one; empty if the run went on after it
  std::int64_t unread = 0;       // lines that are not understood: cut off, damaged
  bool cut = false;  // the last line is cut off, perhaps because it is still being written
};

/// Reads a file of any version; an empty table if there is no file. Throws UserError if it cannot
/// be read.
MetricsTable read_metrics(const std::filesystem::path& path);

}  // namespace decent
