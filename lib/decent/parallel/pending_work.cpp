#include "decent/parallel/pending_work.h"

#include <algorithm>
#include <chrono>
#include <future>
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

class WatchedWork : public PendingWork {
 public:
  // Only if no thread can be started is the work deferred until wait().
  WatchedWork(Pending work, TraceSpan span)
      : work_(std::move(work)),
        end_(std::async(std::launch::async | std::launch::deferred,
                        [work = work_.get(), span = std::move(span)]() mutable {
                          work->wait_on_host();
                          span.end();
                        })) {}

  void wait() override {
    end_.get();
    work_->wait();  // for the stream of the thread that uses the tensors
  }
  void wait_on_host() override { end_.get(); }
  bool done() override {
    return end_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

 private:
  Pending work_;
  std::shared_future<void> end_;  // destroyed before work_; that waits for the thread
};

}  // namespace

Pending all_of(std::vector<std::shared_ptr<PendingWork>> works) {
  return std::make_unique<AllOf>(std::move(works));
}

Pending watched(Pending work, TraceSpan span) {
  return std::make_unique<WatchedWork>(std::move(work), std::move(span));
}

}  // namespace decent
