#pragma once
// A thread that does what it is given, one thing after another.

#include <functional>
#include <memory>
#include <thread>

namespace decent {

class TaskThread {
 public:
  TaskThread();
  /// What has not begun is dropped. What is under way is not waited for, as it may be waiting for a
  /// peer that is gone: the thread ends after it.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  /// Any thread may call it. A task must not throw.
  void post(std::function<void()> task);

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace decent
