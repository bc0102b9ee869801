#pragma once
// The extents of a sample's output, which must be the same for all samples in a file that holds one
// table or array.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {

class SampleShape {
 public:
  /// `shape`: of a batch, whose first extent counts the samples. `why`: the reason why the file
  /// `path` cannot hold different extents. Throws UserError if an earlier batch had other extents.
  void check(const std::vector<std::int64_t>& shape, const std::filesystem::path& path,
             const std::string& why) {
    const std::vector<std::int64_t> extents(shape.begin() + 1, shape.end());
    if (!known_) extents_ = extents;
    known_ = true;
    if (extents == extents_) return;
    throw UserError("--predict '" + path.string() + "': outputs of samples have the shapes " +
                    shape_text(extents_) + " and " + shape_text(extents) + ", " + why +
                    "; a .jsonl file takes them");
  }

 private:
  std::vector<std::int64_t> extents_;
  bool known_ = false;
};

}  // namespace decent
