#include "decent/parallel/exchange/all_of.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace decent {
namespace {

class AllOf : public PendingWork {
 public:
  explicit AllOf(std::vector<std::shared_ptr<PendingWork>> works) : works_(std::move(works)) {}
  void wait() override {
    for (const auto& work : works_) work->wait();
  }
  void wait_on_host() override {
    for (const auto& work : works_) work->wait_on_host();
  }
  bool done() override {
    return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->done(); });
  }

 private:
  std::vector<std::shared_ptr<PendingWork>> works_;
};

}  // namespace

Pending all_of(std::vector<std::shared_ptr<PendingWork>> works) {
  return std::make_unique<AllOf>(std::move(works));
}

}  // namespace decent
