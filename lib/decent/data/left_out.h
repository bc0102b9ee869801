#pragma once
// Samples that cannot be read and are left out (data.on_error: skip).

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace decent {

/// All functions may be called from any thread.
class LeftOut {
 public:
  /// What replaces a sample that is left out.
  enum class Instead {
    next_sample,  // the next one that can be read, so that batches of training keep their size
    nothing,      // for evaluation, which takes each sample once
  };

  explicit LeftOut(Instead instead) : instead_(instead) {}

  Instead instead() const { return instead_; }
  void add(std::int64_t sample, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (known_.insert(sample).second) new_.emplace(sample, why);
  }
  bool contains(std::int64_t sample) {
    const std::lock_guard lock(mutex_);
    return known_.contains(sample);
  }
  /// The samples that were added since the last call, by number, each once.
  std::map<std::int64_t, std::string> take_new() {
    const std::lock_guard lock(mutex_);
    return std::exchange(new_, {});
  }

 private:
  Instead instead_;
  std::mutex mutex_;
  std::set<std::int64_t> known_;
  std::map<std::int64_t, std::string> new_;
};

}  // namespace decent
