#pragma once
// A method of the module that is being written.

#include <cstddef>
#include <string>
#include <vector>

#include "decent/core/script_text.h"
#include "decent/pt2/analyse/mode.h"
#include "decent/pt2/analyse/schemas.h"
#include "decent/pt2/analyse/writes.h"
#include "decent/pt2/program/program.h"
#include "decent/pt2/translate/argument_text.h"

namespace decent::pt2 {

/// The values of one graph, by name. A graph inside of another one has a scope of its own.
class ValueScope {
 public:
  void define(const std::string& name, const std::string& text) {
    texts_.insert_or_assign(name, text);
  }
  /// Throws Unsupported if it is not defined, because the node that makes it has no translation.
  const std::string& text(const std::string& name) const;

 private:
  ByName<std::string> texts_;
};

/// What is known about the program of the method.
struct Analysis {
  const OperatorSchemas& schemas;
  ModeSurvey modes;
  BufferWrites writes;
  std::set<const Node*> written_later;  // see find_written_later
  bool is_for_both_modes = true;        // false for one of two programs
};

class MethodWriter {
 public:
  explicit MethodWriter(const Analysis& analysis) : analysis_(analysis) {}

  void line(const std::string& text) {
    lines_ += std::string(depth_ * 4, ' ') + text + "\n";
    ++line_count_;
  }
  /// Lines up to the matching close() are indented one step further.
  void open(const std::string& text) {
    line(text);
    ++depth_;
  }
  void close() { --depth_; }

  /// An identifier that nothing else in the method has.
  std::string fresh_name(const std::string& name) { return identifiers_.make(name); }
  std::string device() {
    needs_device_ = true;
    return "device";
  }

  /// Adds lines for the graph's nodes. A node without a translation is noted in refusals(), and its
  /// results are used as if it had one, so that all such nodes are found at once.
  void add_nodes(const Graph& graph, ValueScope& scope);
  /// "node 'x' (torch.ops.mine.f.default) belongs to ..".
  const std::vector<std::string>& refusals() const { return refusals_; }

  std::size_t line_count() const { return line_count_; }
  /// The lines, after "device = .." with this expression if they need it.
  std::string body(const std::string& device) const;

  const OperatorSchemas& schemas() const { return analysis_.schemas; }
  const ModeSurvey& modes() const { return analysis_.modes; }
  const NodeWrites* training_writes(const Node& node) const;
  bool is_written_later(const Node& node) const { return analysis_.written_later.contains(&node); }

 private:
  void add_node(const Node& node, const Graph& graph, ValueScope& scope);

  const Analysis& analysis_;
  Identifiers identifiers_;
  std::string lines_;
  std::size_t line_count_ = 0;
  std::size_t depth_ = 1;  // inside a method
  bool needs_device_ = false;
  std::vector<std::string> refusals_;
};

}  // namespace decent::pt2
