#include "decent/comm/task_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace decent {

// Shared with the thread, which may outlive the object.
struct TaskThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool busy = false;
  bool stop = false;

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || !tasks.empty(); });
      if (stop) return;
      std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      busy = true;
      lock.unlock();
      task();
      task = nullptr;  // may destroy what it holds: not under the lock
      lock.lock();
      busy = false;
    }
  }
};

TaskThread::TaskThread()
    : state_(std::make_shared<State>()), thread_([state = state_] { state->run(); }) {}

TaskThread::~TaskThread() {
  std::deque<std::function<void()>> dropped;
  bool busy = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    busy = state_->busy;
    dropped.swap(state_->tasks);
  }
  state_->changed.notify_one();
  busy ? thread_.detach() : thread_.join();
}

void TaskThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(std::move(task));
  }
  state_->changed.notify_one();
}

}  // namespace decent
