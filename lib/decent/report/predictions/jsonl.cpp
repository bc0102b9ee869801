// Predictions as JSON lines: an object for each sample, lists as deep as its output.

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "decent/core/file.h"
#include "decent/report/predictions/formats.h"

namespace decent {
namespace {

std::string in_json(const std::string& text) {
  // File names need not be UTF-8.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// JSON has neither nan nor infinities.
std::string in_json(float value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

// Values of the extents `shape` as nested lists; a value without extents is not in a list.
template <class T, class ToText>
std::string nested(std::span<const std::int64_t> shape, std::span<const T> values,
                   const ToText& text_of) {
  if (shape.empty()) return text_of(values.front());
  const auto count = static_cast<std::size_t>(shape.front());
  const std::size_t each = count == 0 ? 0 : values.size() / count;
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i)
    text += (i > 0 ? "," : "") + nested(shape.subspan(1), values.subspan(i * each, each), text_of);
  return text + "]";
}

template <class T, class ToText>
std::string of_sample(const BatchColumn<T>& column, std::size_t sample, const ToText& text_of) {
  const std::size_t each = column.values.size() / static_cast<std::size_t>(column.shape.front());
  return nested(std::span(column.shape).subspan(1), column.values.subspan(sample * each, each),
                text_of);
}

class JsonlPredictions final : public PredictionFile {
 public:
  JsonlPredictions(const std::filesystem::path& path, std::vector<std::string> names)
      : file_(path), names_(std::move(names)) {}

  void add(const PredictionBatch& batch) override {
    std::string text;
    for (std::size_t i = 0; i < batch.rows.size(); ++i) text += line(batch, i);
    file_.write(text);
    file_.check();
  }

  void finish() override { file_.commit(); }

 private:
  std::string line(const PredictionBatch& batch, std::size_t sample) const {
    const auto number = [](float value) { return in_json(value); };
    std::string text = "{\"row\":" + std::to_string(batch.rows[sample]);
    if (!batch.files.empty()) text += ",\"file\":" + in_json(batch.files[sample]);
    if (!batch.file_rows.empty())
      text += ",\"file_row\":" + std::to_string(batch.file_rows[sample]);
    if (batch.classes) {
      text += ",\"class\":" + of_sample(*batch.classes, sample,
                                        [this](std::int64_t value) { return class_text(value); });
      text += ",\"probability\":" + of_sample(*batch.probability, sample, number);
    }
    return text + ",\"output\":" + of_sample(batch.output, sample, number) + "}\n";
  }

  std::string class_text(std::int64_t number) const {
    const auto place = static_cast<std::size_t>(number);
    return place < names_.size() ? in_json(names_[place]) : std::to_string(number);
  }

  AtomicFile file_;
  std::vector<std::string> names_;
};

std::unique_ptr<PredictionFile> open_jsonl(const std::filesystem::path& path,
                                           const std::vector<std::string>& names) {
  return std::make_unique<JsonlPredictions>(path, names);
}

}  // namespace

PredictionFormat jsonl_predictions() { return {.extension = ".jsonl", .open = open_jsonl}; }

}  // namespace decent
