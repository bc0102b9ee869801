#include "decent/pt2/program/tree_spec.h"

namespace decent::pt2 {

std::size_t TreeSpec::leaves() const {
  if (kind == Kind::leaf) return 1;
  std::size_t sum = 0;
  for (const TreeSpec& child : children) sum += child.leaves();
  return sum;
}

}  // namespace decent::pt2
