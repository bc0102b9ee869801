#pragma once
// A scope of names that are known in a part of a graph only.

namespace decent::onnx {

/// Adds a scope as long as this object lives.
template <typename Scopes>
class InnerScope {
 public:
  explicit InnerScope(Scopes& scopes) : scopes_(scopes) { scopes_.emplace_back(); }
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;
  ~InnerScope() { scopes_.pop_back(); }

 private:
  Scopes& scopes_;
};

}  // namespace decent::onnx
