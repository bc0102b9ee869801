#include "decent/parallel/exchange/all_of.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace decent {
namespace {

class AllOf : public PendingWork {
 public:
  explicit AllOf(std::vector<Pending> works) : works_(std::move(works)) {}
  void wait() override {
    for (const Pending& work : works_) work->wait();
  }
  void wait_on_host() override {
    for (const Pending& work : works_) work->wait_on_host();
  }
  bool done() override {
    return std::all_of(works_.begin(), works_.end(),
                       [](const Pending& work) { return work->done(); });
  }

 private:
  std::vector<Pending> works_;
};

}  // namespace

Pending all_of(std::vector<Pending> works) { return std::make_unique<AllOf>(std::move(works)); }

}  // namespace decent
