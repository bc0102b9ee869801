#pragma once
// The external data of a model that is being written.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decent/core/file.h"
#include "decent/onnx/format/splice.h"

namespace decent::onnx {

/// The new elements of each tensor that changes.
using Changed = std::map<const Tensor*, std::span<const std::byte>>;

/// The places of the tensors' elements in the written file. Tensors that shared a range and still
/// agree share one again.
class ExternalLayout {
 public:
  /// Places `elements`, the new ones of `tensor`, and returns their offset.
  std::uint64_t place(const Tensor& tensor, std::span<const std::byte> elements);
  /// Writes all placed elements, with zeros in between.
  void write(AtomicFile& to) const;

 private:
  struct Piece {
    std::uint64_t offset = 0;
    std::span<const std::byte> elements;
  };
  using Range = std::pair<const std::byte*, std::size_t>;  // in the mapped original

  std::vector<Piece> pieces_;                         // by offset
  std::map<Range, std::vector<std::size_t>> placed_;  // -> numbers of pieces
};

/// All external data of a model that is written to `path`: one file beside it, named after it
/// ("m.onnx.data" for "m.onnx", or "m.onnx.2.data", .. if that is taken), whatever the original's
/// files. The name is always new, because until the rename of the written model, the model at
/// `path` refers to its own files.
class ExternalWriter {
 public:
  /// Writes the file under a temporary name and appends the resulting edits of the model file. Does
  /// nothing if the model has no external data. Throws WriteError.
  ExternalWriter(const Model& model, const Changed& changed, const std::filesystem::path& path,
                 std::vector<Edit>& edits);
  /// Removes the file again unless keep() was reached.
  ~ExternalWriter();
  ExternalWriter(const ExternalWriter&) = delete;
  ExternalWriter& operator=(const ExternalWriter&) = delete;

  /// Makes the content durable. Throws WriteError.
  void sync();
  /// Gives the file its final name, durably. Throws WriteError, also if another file got the name
  /// meanwhile.
  void publish();
  /// Must be called when a model that refers to the file has been renamed.
  void keep() { published_ = false; }

 private:
  std::filesystem::path path_;
  std::optional<AtomicFile> file_;
  bool published_ = false;  // and not kept yet
};

/// The external data files of the model at `path` that are named after it, and so are useless once
/// it is replaced. Leaves out files from which `replacement` is made and files that another .onnx
/// file of the folder names. Empty if there is no model.
std::vector<std::filesystem::path> superseded_data(const std::filesystem::path& path,
                                                   const Model& replacement);

}  // namespace decent::onnx
