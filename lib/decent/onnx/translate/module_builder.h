#pragma once
// The module of a translation while it is written; internal to this folder.

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <string_view>

#include "decent/core/script_text.h"
#include "decent/onnx/translate/translation.h"
#include "decent/onnx/translate/value.h"

namespace decent::onnx {

/// Adds a scope of names that are known in a part of a graph only, as long as this object lives.
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

/// Lines of TorchScript, and the helpers and the device that they need.
class MethodSource {
 public:
  void add(const std::string& line);
  /// Lines up to the matching close() are indented one step further.
  void open(const std::string& line);
  void close() { --depth_; }

  /// "self._name": a method of helpers.h.
  std::string helper(std::string_view name);
  /// The variable with the device of the model's tensors.
  std::string device();

  /// The methods that are called, then this one: `signature`, a line "device = .." if it is needed,
  /// the lines.
  std::string text(const std::string& signature, const std::string& device) const;

 private:
  std::string lines_;
  std::size_t depth_ = 1;  // inside a method
  std::set<std::string> helpers_;
  bool needs_device_ = false;
};

/// Values by their names in the file, the lines of forward(), and the tensors to which these refer.
class ModuleBuilder {
 public:
  ModuleBuilder(const Model& model, const Classification& classification,
                const TranslationOptions& options);

  // Values. A graph inside a node has a scope of names of its own.

  using Scopes = std::deque<std::map<std::string, Value, std::less<>>>;
  InnerScope<Scopes> enter_scope() { return InnerScope(scopes_); }
  /// nullptr if there is none.
  const Value* find(std::string_view name) const;
  /// The same in the innermost scope only.
  Value* find_here(std::string_view name);
  void define(const std::string& name, Value value);
  void add_initializers(const Graph& graph);
  /// A parameter, a buffer, or a constant.
  Value value_of(const Tensor& tensor, const Classified& classified);
  /// Whether a node reads the value, or a graph returns it.
  bool is_read(std::string_view name);

  // The type in which the model computes.

  ElementType as_computed(ElementType type) const;
  std::shared_ptr<const Tensor> as_computed(std::shared_ptr<const Tensor> tensor) const;

  // Source.

  /// The method that is being written.
  MethodSource& method() { return method_; }
  /// A name that nothing else has.
  std::string fresh_name(std::string_view hint) { return identifiers_.make(hint); }
  /// TorchScript for the tensor of any value.
  std::string text_of(const Value& value);
  std::string constant_text(std::shared_ptr<const Tensor> tensor, std::string_view hint);

  /// The module being made: all of it except `methods`.
  ModuleSource& source() { return source_; }

 private:
  Value value_of(const Tensor& initializer);
  Value parameter(const Tensor& tensor, const Classified& classified);
  std::shared_ptr<const Tensor> as_computed(const Tensor& tensor) const;

  const Model& model_;
  const Classification& classification_;
  const TranslationOptions& options_;
  Scopes scopes_;
  std::set<std::string, std::less<>> read_names_;  // filled by the first is_read()
  MethodSource method_;
  Identifiers identifiers_;
  Identifiers constant_names_;
  std::map<const Tensor*, std::string> constant_texts_;
  ModuleSource source_;
};

}  // namespace decent::onnx
