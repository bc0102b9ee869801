#pragma once
// A message with some of its fields replaced or removed, and all else as it was.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "decent/onnx/format/input.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// What stands in place of a field, tag included; nothing where the field is removed. It may be
/// several fields.
struct Edit {
  ByteRange field;                       // in the file, tag included
  std::string begin = {};                // the new bytes, ..
  std::span<const std::byte> rest = {};  // .. and those after them, which the caller keeps
};

/// In the order of the file.
void sort_edits(std::vector<Edit>& edits);

/// The new bytes as pieces, one after the other: of the file, of the edits, and the lengths of the
/// messages around them.
struct Spliced {
  std::vector<std::span<const std::byte>> pieces;
  std::deque<std::string> lengths;  // that pieces refer to
  std::uint64_t size = 0;

  /// More bytes, which outlive it.
  void append(std::span<const std::byte> bytes);
};

/// The bytes of `file`, a message, with `edits`, which are sorted, of whole fields at any depth,
/// and apart from one another. Messages around an edit get their new lengths; a length that is
/// still the same keeps its bytes. The result refers to the file and to the edits.
Spliced splice(Input& file, std::span<const Edit> edits);

}  // namespace decent::onnx
