#pragma once
// Walking through the arguments of a graph.

#include <string>
#include <variant>
#include <vector>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The kind of a graph's value.
enum class ValueKind { tensor, sym_int, sym_float, sym_bool };

/// Visits an Argument, see for_each_value.
template <typename Visit>
class ArgumentWalk {
 public:
  explicit ArgumentWalk(Visit& visit) : visit_(visit) {}

  void operator()(const TensorArgument& tensor) const { visit_(tensor.name, ValueKind::tensor); }
  void operator()(const OptionalTensor& tensor) const {
    if (tensor) (*this)(*tensor);
  }
  void operator()(const SymIntArgument& number) const { named(number, ValueKind::sym_int); }
  void operator()(const SymFloatArgument& number) const { named(number, ValueKind::sym_float); }
  void operator()(const SymBoolArgument& number) const { named(number, ValueKind::sym_bool); }
  template <typename Item>
  void operator()(const std::vector<Item>& items) const {
    for (const auto& item : items) (*this)(item);
  }
  void operator()(const ArgumentDict& dict) const {
    for (const NamedValue& entry : dict.entries) std::visit(*this, entry.value);
  }
  template <typename Other>
  void operator()(const Other&) const {}  // a constant

 private:
  template <typename Number>
  void named(const SymArgument<Number>& number, ValueKind kind) const {
    if (number.name() != nullptr) visit_(*number.name(), kind);
  }

  Visit& visit_;
};

/// Calls `visit(name, kind)` for each value of the graph to which an argument refers, in order, but
/// not for values inside of a graph that is an argument.
template <typename Visit>
void for_each_value(const Argument& argument, Visit visit) {
  std::visit(ArgumentWalk<Visit>(visit), argument);
}

/// The same with `visit(name)`.
template <typename Visit>
void for_each_value_name(const Argument& argument, Visit visit) {
  for_each_value(argument, [&](const std::string& name, ValueKind /*kind*/) { visit(name); });
}

}  // namespace decent::pt2
