#pragma once
// Small constants of a graph, in whatever form exporters write them: initializers, Constant nodes,
// and arithmetic on shapes that is not folded yet.

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
  /// `producer` returns the node that makes a value, or nullptr.
  using Producer = std::function<const Node*(const std::string&)>;
  ConstantValues(const Graph& graph, Producer producer);

  /// The value if it is the same in every run and small; otherwise nullptr.
  const SmallConstant* find(const std::string& name) const;

 private:
  std::optional<SmallConstant> compute(const Node& node, std::size_t depth) const;
  const SmallConstant* find(const std::string& name, std::size_t depth) const;

  std::map<std::string, const Tensor*, std::less<>> initializers_;
  Producer producer_;
  mutable std::map<std::string, std::optional<SmallConstant>> known_;
};

}  // namespace decent::onnx
