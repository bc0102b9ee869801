#pragma once
// For work before the workers are connected, when an error cannot be told to the others yet.

#include <exception>
#include <optional>
#include <utility>

namespace decent {

/// The result of a function, or its error, which is kept until it can be shared with all workers.
template <typename T>
class Deferred {
 public:
  Deferred() = default;
  template <typename Function>
  explicit Deferred(Function function) {
    try {
      value_ = function();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  /// The result; throws the error.
  const T& get() const {
    if (error_) std::rethrow_exception(error_);
    return value_.value();
  }

  /// Null if there was an error.
  const T* get_if() const { return value_ ? &*value_ : nullptr; }

 private:
  std::optional<T> value_;
  std::exception_ptr error_;
};

}  // namespace decent
