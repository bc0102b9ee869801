#include "decent/task/evaluation_sums.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace decent {
namespace {

// All tensors among the sums, one after the other, so that one copy from a GPU suffices.
at::Tensor read_together(const std::vector<std::vector<BatchSums>>& batches) {
  std::vector<at::Tensor> parts;
  for (const std::vector<BatchSums>& batch : batches) {
    for (const BatchSums& sums : batch) {
      for (const auto& sum : sums) {
        const auto* tensor = std::get_if<at::Tensor>(&sum);
        if (tensor != nullptr) parts.push_back(tensor->to(at::kDouble).reshape({-1}));
      }
    }
  }
  return parts.empty() ? at::zeros({0}, at::kDouble) : at::cat(parts).to(at::kCPU);
}

// The numbers of one metric's sums; the numbers of tensors are the next ones of `read`.
std::vector<double> numbers_of(const BatchSums& sums, const double*& read) {
  std::vector<double> numbers;
  for (const auto& sum : sums) {
    if (const auto* tensor = std::get_if<at::Tensor>(&sum)) {
      const double* begin = std::exchange(read, read + tensor->numel());
      numbers.insert(numbers.end(), begin, read);
    } else {
      numbers.push_back(std::get<double>(sum));
    }
  }
  return numbers;
}

// The rows of all workers, of one length. Each worker fills its row of a table of zeros, and an
// all-reduce adds the tables up.
std::vector<std::vector<double>> gathered(const std::vector<double>& own,
                                          Communicator& communicator) {
  const std::size_t columns = own.size();
  const at::Tensor table =
      at::zeros({communicator.size(), static_cast<std::int64_t>(columns)}, at::kDouble);
  double* cells = table.mutable_data_ptr<double>();
  std::copy(own.begin(), own.end(),
            cells + static_cast<std::size_t>(communicator.rank()) * columns);
  communicator.all_reduce_sum(table)->wait();
  std::vector<std::vector<double>> rows;
  for (int rank = 0; rank < communicator.size(); ++rank, cells += columns)
    rows.emplace_back(cells, cells + columns);
  return rows;
}

}  // namespace

EvaluationSums::EvaluationSums(std::vector<Metric> metrics)
    : metrics_(std::move(metrics)), sums_(metrics_.size()) {}

void EvaluationSums::add(const EvaluatedBatch& batch) {
  std::vector<BatchSums>& sums = unread_.emplace_back();
  for (const Metric& metric : metrics_) sums.push_back(metric.sums(batch));
  if (unread_.size() == kMaxUnread) read();
}

void EvaluationSums::read() {
  if (unread_.empty()) return;
  const at::Tensor values = read_together(unread_);
  const double* next = values.const_data_ptr<double>();
  for (const std::vector<BatchSums>& batch : unread_) {
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      metrics_[i].merge(sums_[i], numbers_of(batch[i], next));
    }
  }
  unread_.clear();
}

// For each metric, the largest number of sums of any worker: one without a batch has none.
std::vector<std::size_t> EvaluationSums::agreed_sizes(Communicator& communicator) const {
  std::vector<double> own;
  for (const std::vector<double>& sums : sums_) own.push_back(static_cast<double>(sums.size()));
  std::vector<std::size_t> sizes(own.size());
  for (const std::vector<double>& row : gathered(own, communicator)) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      sizes[i] = std::max(sizes[i], static_cast<std::size_t>(row[i]));
  }
  return sizes;
}

// Every worker gets the sums of all before merging, because some sums do not simply add up.
void EvaluationSums::add_up_over(Communicator& communicator) {
  read();
  const std::vector<std::size_t> sizes = agreed_sizes(communicator);
  std::vector<double> own;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].resize(sizes[i]);
    own.insert(own.end(), sums_[i].begin(), sums_[i].end());
    sums_[i].clear();
  }
  for (const std::vector<double>& row : gathered(own, communicator)) {
    std::span<const double> left = row;
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      metrics_[i].merge(sums_[i], left.first(sizes[i]));
      left = left.subspan(sizes[i]);
    }
  }
}

std::vector<Score> EvaluationSums::scores() {
  read();
  std::vector<Score> scores;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const bool none = sums_[i].empty();  // no sample could be read
    const double value =
        none ? std::numeric_limits<double>::quiet_NaN() : metrics_[i].value(sums_[i]);
    scores.push_back({metrics_[i].name, value, metrics_[i].is_share});
  }
  return scores;
}

}  // namespace decent
