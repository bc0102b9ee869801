#pragma once
// Batches whose loss is a number but means nothing: LossFunction::doubt.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "decent/task/criterion.h"

namespace decent {

/// Keeps the first doubt about each data set.
class LossDoubts {
 public:
  void saw(const Criterion& criterion, const std::string& data, const at::Tensor& output,
           const at::Tensor& target) {
    if (!criterion.may_doubt() || found_.contains(data)) return;
    std::string doubt = criterion.doubt(output, target);
    if (!doubt.empty()) found_.emplace(data, std::move(doubt));
  }

  /// By data set, for humans.
  const std::map<std::string, std::string>& found() const { return found_; }

 private:
  std::map<std::string, std::string> found_;
};

}  // namespace decent
