#pragma once
// Replaces or removes fields of a message, and leaves everything else as it was.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "decent/onnx/format/input.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// The replacement of a field, tag included; empty if the field is removed. It may be several
/// fields.
struct Edit {
  ByteRange field;                       // in the file, tag included
  std::string begin = {};                // the new bytes, ..
  std::span<const std::byte> rest = {};  // .. and the bytes after them, which the caller keeps
};

/// In the order of the file.
void sort_edits(std::vector<Edit>& edits);

/// The new bytes as pieces, one after the other: parts of the file, edits, and the lengths of the
/// messages around them.
struct Spliced {
  std::vector<std::span<const std::byte>> pieces;
  std::deque<std::string> lengths;  // that pieces refer to
  std::uint64_t size = 0;

  /// Appends bytes, which must outlive this object.
  void append(std::span<const std::byte> bytes);
};

/// The bytes of `file`, a message, with `edits`, which must be sorted, must replace whole fields at
/// any depth, and must not overlap. Messages around an edit get their new lengths; an unchanged
/// length keeps its bytes. The result refers to the file and to the edits.
Spliced splice(Input& file, std::span<const Edit> edits);

}  // namespace decent::onnx
