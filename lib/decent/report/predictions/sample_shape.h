#pragma once
// The extents that outputs of all samples must have in common, in files that hold one table or
// array.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {

class SampleShape {
 public:
  /// `shape`: of a batch, whose first extent counts the samples. `why`: what the file `path` does
  /// not do. Throws UserError where another batch before had other extents.
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
