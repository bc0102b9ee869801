// Predictions as CSV (RFC 4180): a row for each sample, a column for each number.

#include <charconv>
#include <cmath>
#include <utility>

#include "decent/core/csv_cell.h"
#include "decent/core/file.h"
#include "decent/report/predictions/formats.h"
#include "decent/report/predictions/sample_shape.h"

namespace decent {
namespace {

// The shortest text that reads back as the same float.
std::string number_text(float value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

// How many numbers each sample has.
std::size_t width_of(const std::vector<std::int64_t>& shape) {
  std::size_t width = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) width *= static_cast<std::size_t>(shape[i]);
  return width;
}

class CsvPredictions final : public PredictionFile {
 public:
  CsvPredictions(const std::filesystem::path& path, std::vector<std::string> names)
      : path_(path), file_(path), names_(std::move(names)) {}

  void add(const PredictionBatch& batch) override {
    shape_.check(batch.output.shape, path_, "and rows of a table are of one length");
    std::string text = begun_ ? "" : head(batch);
    begun_ = true;
    for (std::size_t i = 0; i < batch.rows.size(); ++i) text += line(batch, i);
    file_.write(text);
    file_.check();
  }

  void finish() override { file_.commit(); }

 private:
  // The name of a single column has no number.
  static std::string columns(const std::string& name, std::size_t width, bool numbered) {
    if (!numbered) return "," + name;
    std::string text;
    for (std::size_t i = 0; i < width; ++i) text += "," + name + "_" + std::to_string(i);
    return text;
  }

  static std::string head(const PredictionBatch& batch) {
    std::string text = "row";
    if (!batch.files.empty()) text += ",file";
    if (!batch.file_rows.empty()) text += ",file_row";
    if (batch.classes) {
      const bool several = batch.classes->shape.size() > 1;
      const std::size_t width = width_of(batch.classes->shape);
      text += columns("class", width, several) + columns("probability", width, several);
    }
    return text + columns("output", width_of(batch.output.shape), true) + "\n";
  }

  std::string line(const PredictionBatch& batch, std::size_t sample) const {
    std::string text = std::to_string(batch.rows[sample]);
    if (!batch.files.empty()) text += "," + csv_cell(batch.files[sample]);
    if (!batch.file_rows.empty()) text += "," + std::to_string(batch.file_rows[sample]);
    if (batch.classes) {
      const std::size_t width = width_of(batch.classes->shape);
      for (const std::int64_t each : batch.classes->values.subspan(sample * width, width))
        text += "," + class_text(each);
      for (const float each : batch.probability->values.subspan(sample * width, width))
        text += "," + number_text(each);
    }
    const std::size_t width = width_of(batch.output.shape);
    for (const float each : batch.output.values.subspan(sample * width, width))
      text += "," + number_text(each);
    return text + "\n";
  }

  std::string class_text(std::int64_t number) const {
    const auto place = static_cast<std::size_t>(number);
    return place < names_.size() ? csv_cell(names_[place]) : std::to_string(number);
  }

  std::filesystem::path path_;
  AtomicFile file_;
  std::vector<std::string> names_;
  SampleShape shape_;
  bool begun_ = false;
};

std::unique_ptr<PredictionFile> open_csv(const std::filesystem::path& path,
                                         const std::vector<std::string>& names) {
  return std::make_unique<CsvPredictions>(path, names);
}

}  // namespace

PredictionFormat csv_predictions() { return {.extension = ".csv", .open = open_csv}; }

}  // namespace decent
