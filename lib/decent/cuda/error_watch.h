#pragma once
// A thread that watches NCCL groups for errors. Otherwise an error in an operation whose wait() has
// already returned would show only as a GPU that never finishes.

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace c10d {
class Backend;
}

namespace decent {

class ErrorWatch {
 public:
  /// If `on_error` is empty, there is no thread. `device` is the GPU of the groups.
  ErrorWatch(std::function<void(const std::string&)> on_error, c10::Device device);
  ~ErrorWatch();
  ErrorWatch(const ErrorWatch&) = delete;
  ErrorWatch& operator=(const ErrorWatch&) = delete;

  /// From now on an error of `group` calls on_error, in the thread, with a message that begins with
  /// `name`. Only the first error of all groups is reported.
  void add(const c10::intrusive_ptr<c10d::Backend>& group, const std::string& name);
  void remove(const c10::intrusive_ptr<c10d::Backend>& group);

 private:
  void run();
  std::string find_error() const;
  std::string error_of_gpu() const;

  std::function<void(const std::string&)> on_error_;
  c10::Device device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<c10::intrusive_ptr<c10d::Backend>, std::string> groups_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace decent
