#include "decent/task/evaluation_sums.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <span>
#include <utility>

namespace decent {
namespace {

// The tensors among the sums, one after the other: one copy from a GPU for all of them.
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

// The numbers of one metric's sums; those of tensors are the next of `read`.
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

// The rows of all workers, of one length: of a table in which each fills its own, and all others
// have zeros.
std::vector<std::vector<double>> gathered(const std::vector<double>& own, Communicator& world) {
  const std::size_t columns = own.size();
  const at::Tensor table =
      at::zeros({world.size(), static_cast<std::int64_t>(columns)}, at::kDouble);
  double* cells = table.mutable_data_ptr<double>();
  std::copy(own.begin(), own.end(), cells + static_cast<std::size_t>(world.rank()) * columns);
  world.all_reduce_sum(table)->wait();
  std::vector<std::vector<double>> rows;
  for (int rank = 0; rank < world.size(); ++rank, cells += columns)
    rows.emplace_back(cells, cells + columns);
  return rows;
}

}  // namespace

EvaluationSums::EvaluationSums(std::vector<Metric> metrics)
    : metrics_(std::move(metrics)), sums_(metrics_.size()) {}

void EvaluationSums::add(const EvaluatedBatch& batch) {
  std::vector<BatchSums>& sums = unread_.emplace_back();
  for (const Metric& metric : metrics_) sums.push_back(metric.sums(batch));
  if (unread_.size() == kMostUnread) read();
}

void EvaluationSums::read() {
  if (unread_.empty()) return;
  const at::Tensor values = read_together(unread_);
  const double* next = values.const_data_ptr<double>();
  for (const std::vector<BatchSums>& batch : unread_) {
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      const std::vector<double> numbers = numbers_of(batch[i], next);
      sums_[i].resize(numbers.size());
      metrics_[i].merge(sums_[i], numbers);
    }
  }
  unread_.clear();
}

// A worker without a batch does not know how many sums its metrics have.
void EvaluationSums::agree_on_sizes(Communicator& world) {
  std::vector<double> sizes;
  for (const std::vector<double>& sums : sums_) sizes.push_back(static_cast<double>(sums.size()));
  for (const std::vector<double>& row : gathered(sizes, world)) {
    for (std::size_t i = 0; i < sums_.size(); ++i)
      sums_[i].resize(std::max(sums_[i].size(), static_cast<std::size_t>(row[i])));
  }
}

// To everyone first: not all sums just add up.
void EvaluationSums::add_up_over(Communicator& world) {
  read();
  agree_on_sizes(world);
  std::vector<double> own;
  for (std::vector<double>& sums : sums_) {
    own.insert(own.end(), sums.begin(), sums.end());
    std::fill(sums.begin(), sums.end(), 0.0);
  }
  for (const std::vector<double>& row : gathered(own, world)) {
    std::span<const double> left = row;
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      metrics_[i].merge(sums_[i], left.first(sums_[i].size()));
      left = left.subspan(sums_[i].size());
    }
  }
}

std::vector<Score> EvaluationSums::scores() {
  read();
  std::vector<Score> scores;
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    scores.push_back({metrics_[i].name, metrics_[i].value(sums_[i]), metrics_[i].is_share});
  return scores;
}

}  // namespace decent
