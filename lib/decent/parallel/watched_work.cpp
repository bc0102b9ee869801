#include "decent/parallel/watched_work.h"

#include <chrono>
#include <future>
#include <utility>

namespace decent {
namespace {

class WatchedWork : public PendingWork {
 public:
  // Deferred, which is until wait(), only where no thread can be had.
  WatchedWork(Pending work, TraceSpan span)
      : end_(std::async(std::launch::async | std::launch::deferred,
                        [work = std::move(work), span = std::move(span)]() mutable {
                          work->wait();
                          span.end();
                        })) {}

  void wait() override { end_.get(); }
  bool done() override {
    return end_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

 private:
  std::shared_future<void> end_;
};

}  // namespace

Pending watched(Pending work, TraceSpan span) {
  return std::make_unique<WatchedWork>(std::move(work), std::move(span));
}

}  // namespace decent
