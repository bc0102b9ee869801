#pragma once
// External data of a model that is written.

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

/// Tensor -> its new elements, of those that change.
using Changed = std::map<const Tensor*, std::span<const std::byte>>;

/// Where in the written file the elements of tensors lie. Tensors that shared a range and still
/// agree share one again.
class ExternalLayout {
 public:
  /// The offset of `elements`, which `tensor` has now.
  std::uint64_t place(const Tensor& tensor, std::span<const std::byte> elements);
  /// Writes all that was placed, with zeros in between.
  void write(AtomicFile& to) const;

 private:
  struct Piece {
    std::uint64_t offset = 0;
    std::span<const std::byte> elements;
  };
  using Range = std::pair<const std::byte*, std::size_t>;  // of the mapped original

  std::vector<Piece> pieces_;                         // by offset
  std::map<Range, std::vector<std::size_t>> placed_;  // -> numbers of pieces
};

/// All external data of a model that is written to `path`: one file beside it, named after it
/// ("m.onnx.data" of "m.onnx"; where that is taken "m.onnx.2.data", ..), whatever files the
/// original's lies in. The name is always a new one: until the written model is renamed, the one
/// that stands under its name refers to other files, and afterwards to this.
class ExternalWriter {
 public:
  /// Writes the file under a temporary name and appends the edits of the model file that follow
  /// from it; nothing where the model has no external data. Throws WriteError.
  ExternalWriter(const Model& model, const Changed& changed, const std::filesystem::path& path,
                 std::vector<Edit>& edits);
  /// Removes the file again unless keep() was reached.
  ~ExternalWriter();
  ExternalWriter(const ExternalWriter&) = delete;
  ExternalWriter& operator=(const ExternalWriter&) = delete;

  /// The content is durable. Throws WriteError.
  void sync();
  /// The file has its name, durably. Throws WriteError, also where another file got it meanwhile.
  void publish();
  /// A model that refers to the file has been renamed.
  void keep() { published_ = false; }

 private:
  std::filesystem::path path_;
  std::optional<AtomicFile> file_;
  bool published_ = false;  // and not kept yet
};

/// The files of external data that the model at `path` refers to and that are named after it, so
/// that they are without use once it is replaced. None where no model is there, none that
/// `replacement` is made from, and none that another .onnx file of the folder names.
std::vector<std::filesystem::path> superseded_data(const std::filesystem::path& path,
                                                   const Model& replacement);

}  // namespace decent::onnx
