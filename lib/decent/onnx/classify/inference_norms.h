#pragma once
// Batch norms that a file holds in pieces and in inference form: the data minus the mean, times
// weight / sqrt(variance + eps), plus bias, in any order of operations.

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "decent/onnx/graph/uses.h"

namespace decent::onnx {

inline constexpr std::string_view kNormMean = "running mean of a batch norm in inference form";
inline constexpr std::string_view kNormVariance =
    "running variance of a batch norm in inference form";
/// The text for a sum under a root that normalizes nothing.
inline constexpr std::string_view kUnderRoot = "under a root, as a variance is";

class InferenceNorms {
 public:
  explicit InferenceNorms(const Uses& uses);

  /// The role of the value that is read there, perhaps through views: one of the texts above, or
  /// "".
  std::string_view role_of(const Use& use) const;

 private:
  void add_sum(const Node& node);
  bool is_root(const Use& use) const;
  std::vector<Use> readers_through_views(ValueId value) const;
  bool visit(ValueId deviation, std::size_t depth);
  bool visit_use(const Use& use, std::size_t depth);
  bool visit_factor(const Use& use, std::size_t depth);
  std::vector<Use> readers_of(const Node& node) const;
  bool is_shift(ValueId value) const;
  bool is_scaled(const Node& node) const;
  bool is_mean(const Use& use) const;

  const Uses& uses_;
  std::map<const Node*, std::string_view> sums_;  // under a root
  std::map<ValueId, bool> scales_;  // values computed from a root: whether they scale the data
  std::set<const Node*> scalings_;  // Mul and Div of such a value and the data
  std::set<const Node*> means_;     // Mul and Div of such a value and the mean
};

}  // namespace decent::onnx
