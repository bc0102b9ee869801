#pragma once
// A thread that runs tasks one after another.

#include <functional>
#include <memory>
#include <thread>

namespace decent {

class TaskThread {
 public:
  TaskThread();
  /// Drops tasks that have not begun. Does not wait for the running task, which may be waiting for
  /// a peer that is gone; the thread ends after it.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  /// Any thread. A task must not throw.
  void post(std::function<void()> task);

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace decent
