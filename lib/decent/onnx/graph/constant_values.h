#pragma once
// Small constants of a graph, however exporters write them: initializers, Constant nodes, and the
// arithmetic on shapes that comes before folding.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

struct SmallConstant {
  ElementType type = ElementType::undefined;
  std::vector<std::int64_t> dims;
  std::vector<double> values;  // all of them, row-major
};

/// Computes constants of up to 4096 elements on demand.
class ConstantValues {
 public:
  /// `producer` gives the node that makes a value, or nullptr.
  using Producer = std::function<const Node*(const std::string&)>;
  ConstantValues(const Graph& graph, Producer producer);

  /// The value, where it is the same in every run and small.
  const SmallConstant* find(const std::string& name) const;

 private:
  std::optional<SmallConstant> compute(const Node& node, std::size_t depth) const;
  const SmallConstant* find(const std::string& name, std::size_t depth) const;

  std::map<std::string, const Tensor*, std::less<>> initializers_;
  Producer producer_;
  mutable std::map<std::string, std::optional<SmallConstant>> known_;
};

}  // namespace decent::onnx
