#include "decent/report/page/metrics_table.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "decent/core/file.h"

namespace decent {
namespace {

using Json = nlohmann::ordered_json;
using Figures = std::vector<std::pair<std::string, double>>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Takes numbers, and null, which stands for a number that was not finite.
Figures figures_of(const Json& object) {
  Figures figures;
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) figures.emplace_back(name, value.get<double>());
    if (value.is_null()) figures.emplace_back(name, kNone);
  }
  return figures;
}

double figure(const Figures& figures, std::string_view name) {
  for (const auto& [each, value] : figures)
    if (each == name) return value;
  return kNone;
}

// Nothing for a number that cannot be a count of steps or workers.
std::optional<std::int64_t> count_of(double number) {
  if (!(number >= 0 && number < 1e18)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// Whether the step is later than all steps in the columns.
bool goes_on(const MetricsColumns& columns, double step) {
  if (!(step >= 0)) return false;
  const std::vector<double>* steps = columns.find("step");
  return steps == nullptr || steps->empty() || step > steps->back();
}

bool is_known(const std::string& kind) {
  return kind.empty() || kind == "train" || kind == "eval" || kind == "resume" || kind == "end";
}

class Reader {
 public:
  void line(std::string_view text, bool whole) {
    const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    // Later versions may write lines of other kinds.
    if (object.is_object() && (!is_known(text_in(object, "kind")) || add(object))) return;
    ++table_.unread;
    table_.cut = !whole;
  }

  MetricsTable take() { return std::move(table_); }

 private:
  bool add(const Json& object) {
    const std::string kind = text_in(object, "kind");
    const Figures figures = figures_of(object);
    if (kind == "train") return add_train(figures);
    if (kind == "eval") return add_evaluation(object, figures);
    if (kind == "resume") return add_resume(object, figures);
    return kind == "end" && add_end(object, figures);
  }

  bool add_train(const Figures& figures) {
    if (!goes_on(table_.train, figure(figures, "step"))) return false;
    table_.train.add(figures);
    table_.ends.clear();
    return true;
  }

  bool add_evaluation(const Json& object, const Figures& figures) {
    const double step = figure(figures, "step");
    if (!(step >= 0)) return false;
    LaterEvaluation later{figures, text_in(object, "source"), text_in(object, "checkpoint")};
    const bool own = later.source.empty() && later.checkpoint.empty() && table_.ends.empty();
    if (own && goes_on(table_.eval, step)) {
      table_.eval.add(figures);
    } else {
      table_.later.push_back(std::move(later));
    }
    return true;
  }

  bool add_resume(const Json& object, const Figures& figures) {
    const auto step = count_of(figure(figures, "step"));
    const auto workers = count_of(figure(figures, "workers"));
    const auto before = count_of(figure(figures, "before"));
    const auto lost = object.find("lost");
    if (!step || !workers || !before || lost == object.end() || !lost->is_array()) return false;
    WrittenResume resume{.step = *step,
                         .workers = *workers,
                         .before = *before,
                         .lost = {},
                         .pause_s = figure(figures, "pause_s")};
    for (const Json& each : *lost) {
      const auto rank = count_of(each.is_number() ? each.get<double>() : kNone);
      if (!rank) return false;
      resume.lost.push_back(*rank);
    }
    table_.resumes.push_back(std::move(resume));
    table_.ends.clear();
    return true;
  }

  bool add_end(const Json& object, const Figures& figures) {
    const auto step = count_of(figure(figures, "step"));
    if (!step) return false;
    table_.ends = {WrittenEnd{.status = text_in(object, "status"),
                              .step = *step,
                              .wall_s = figure(figures, "wall_s"),
                              .stopped_early = object.value("stopped_early", Json()) == true}};
    return true;
  }

  MetricsTable table_;
};

}  // namespace

// Lines of one kind have their fields in the same order, so `guess` is nearly always right.
std::vector<double>* MetricsColumns::column(const std::string& name, std::size_t guess) {
  if (guess < columns_.size() && columns_[guess].first == name) return &columns_[guess].second;
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const auto& column) { return column.first == name; });
  if (found != columns_.end()) return &found->second;
  if (columns_.size() >= kMaxColumns) return nullptr;
  columns_.emplace_back(name, std::vector<double>(size_, kNone));
  return &columns_.back().second;
}

void MetricsColumns::add(const std::vector<std::pair<std::string, double>>& line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::vector<double>* values = column(line[i].first, i);
    if (values == nullptr) continue;
    values->resize(size_ + 1, kNone);
    values->back() = line[i].second;
  }
  ++size_;
  for (auto& [name, values] : columns_) values.resize(size_, kNone);
}

const std::vector<double>* MetricsColumns::find(const std::string& name) const {
  for (const auto& [each, values] : columns_)
    if (each == name) return &values;
  return nullptr;
}

MetricsTable read_metrics(const std::filesystem::path& path) {
  Reader reader;
  if (!std::filesystem::exists(path)) return reader.take();
  for_each_line(path, [&](std::string_view text, bool ended) {
    if (!text.empty()) reader.line(text, ended);
  });
  return reader.take();
}

}  // namespace decent
