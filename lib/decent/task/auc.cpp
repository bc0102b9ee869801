#include "decent/task/auc.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace decent {
namespace {

// The sums are these, then kValues numbers in rows, one for each sample: its scores, then its class
// or whether each event is true.
enum Head : std::size_t { kValues, kScores, kTruths, kHead };

using Sums = std::span<const double>;

BatchSums rows_of(const at::Tensor& scores, const at::Tensor& truths) {
  const at::Tensor rows = at::cat({scores.to(at::kDouble), truths.to(at::kDouble)}, 1);
  return {static_cast<double>(rows.numel()), static_cast<double>(scores.size(1)),
          static_cast<double>(truths.size(1)), rows};
}

BatchSums scores_and_truths(const EvaluatedBatch& batch) {
  if (batch.kind == TargetKind::events)
    return rows_of(in_columns(batch.output), in_columns(true_events(batch)));
  const at::Tensor counted = batch.counts.nonzero().reshape({-1});
  const at::Tensor scores = batch.output.to(at::kDouble).softmax(-1).index_select(0, counted);
  return rows_of(scores, batch.target.index_select(0, counted).unsqueeze(1));
}

// If a worker had fewer samples than others, zeros follow its rows.
void append(std::vector<double>& kept, Sums others) {
  if (others.empty() || others[kValues] == 0) return;
  const std::size_t before = kept.empty() ? 0 : static_cast<std::size_t>(kept[kValues]);
  const auto more = static_cast<std::size_t>(others[kValues]);
  if (kept.empty()) kept.assign(others.begin(), others.begin() + kHead);
  kept.resize(kHead + before);
  kept.insert(kept.end(), others.begin() + kHead,
              others.begin() + static_cast<std::ptrdiff_t>(kHead + more));
  kept[kValues] = static_cast<double>(before + more);
}

// A score, and whether its class or event is true.
struct Scored {
  double score;
  bool truth;
};

// From the sum of the ranks of true scores (Mann and Whitney's U); equal scores share the mean of
// their ranks. No score may be NaN, which has no rank.
double area(std::vector<Scored>& all) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  double ranks = 0;
  double truths = 0;
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(begin, all.end(),
                                  [&](const auto& each) { return each.score != begin->score; });
    const auto first = static_cast<double>(begin - all.begin());
    const auto last = static_cast<double>(end - all.begin() - 1);
    const auto those =
        static_cast<double>(std::count_if(begin, end, [](const auto& each) { return each.truth; }));
    ranks += those * ((first + last) / 2 + 1);
    truths += those;
    begin = end;
  }
  const double others = static_cast<double>(all.size()) - truths;
  return (ranks - truths * (truths + 1) / 2) / (truths * others);
}

double mean_area(Sums kept) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (kept.size() <= kHead) return nan;
  const auto scores = static_cast<std::size_t>(kept[kScores]);
  const auto truths = static_cast<std::size_t>(kept[kTruths]);
  const bool classes = truths == 1 && scores > 1;
  double sum = 0;
  double count = 0;
  for (std::size_t label = classes && scores == 2 ? 1 : 0; label < scores; ++label) {
    std::vector<Scored> all;
    for (Sums rows = kept.subspan(kHead); !rows.empty(); rows = rows.subspan(scores + truths)) {
      if (std::isnan(rows[label])) return nan;
      const double truth = rows[scores + (classes ? 0 : label)];
      all.push_back({rows[label], classes ? truth == static_cast<double>(label) : truth != 0});
    }
    const double value = area(all);
    if (std::isnan(value)) continue;  // 0 / 0: all or none are true
    sum += value;
    ++count;
  }
  return count == 0 ? nan : sum / count;
}

}  // namespace

Metric auc_metric() {
  return {.name = "auc",
          .targets = {TargetKind::classes, TargetKind::events},
          .better = Better::higher,
          .sums = scores_and_truths,
          .merge = append,
          .value = mean_area};
}

}  // namespace decent
