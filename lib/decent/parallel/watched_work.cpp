#include "decent/parallel/watched_work.h"

#include <chrono>
#include <future>
#include <utility>

namespace decent {
namespace {

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

Pending watched(Pending work, TraceSpan span) {
  return std::make_unique<WatchedWork>(std::move(work), std::move(span));
}

}  // namespace decent
