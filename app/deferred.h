#pragma once
// What is done before the workers are connected, while nobody can be told of an error.

#include <exception>
#include <optional>
#include <utility>

namespace decent {

/// The result of a function, or its error, which is kept until all workers can hear of it.
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

  /// Null where there was an error.
  const T* get_if() const { return value_ ? &*value_ : nullptr; }

 private:
  std::optional<T> value_;
  std::exception_ptr error_;
};

}  // namespace decent
