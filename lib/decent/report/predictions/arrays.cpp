#include "decent/report/predictions/arrays.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "decent/core/error.h"

namespace decent {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw WriteError("cannot write '" + path.string() + "': " + std::strerror(errno));
}

template <class T>
TensorView view_of(const char* name, DType dtype, const std::vector<T>& values) {
  return {.name = name,
          .dtype = dtype,
          .shape = {std::ssize(values)},
          .data = std::as_bytes(std::span(values))};
}

}  // namespace

Spool::Spool(std::filesystem::path beside) : beside_(std::move(beside)) {
  std::string name = beside_.string() + ".XXXXXX";
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) fail(beside_);
  ::unlink(name.c_str());
}

Spool::~Spool() { ::close(fd_); }

void Spool::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail(beside_);
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

std::span<const std::byte> Spool::bytes() {
  if (!mapped_) mapped_.emplace(fd_, beside_);
  return mapped_->bytes();
}

PredictionArrays::PredictionArrays(const std::filesystem::path& path)
    : path_(path), output_(path), classes_(path), probability_(path) {}

void PredictionArrays::add(const PredictionBatch& batch) {
  shape_.check(batch.output.shape, path_, "which one array does not hold");
  const std::int64_t before = extents_.empty() ? 0 : extents_.front();
  extents_ = batch.output.shape;
  extents_.front() += before;
  output_.write(std::as_bytes(batch.output.values));
  if (batch.classes) {
    if (class_extents_.empty()) class_extents_ = batch.classes->shape;
    class_extents_.front() = extents_.front();
    classes_.write(std::as_bytes(batch.classes->values));
    probability_.write(std::as_bytes(batch.probability->values));
  }
  rows_.insert(rows_.end(), batch.rows.begin(), batch.rows.end());
  files_.insert(files_.end(), batch.files.begin(), batch.files.end());
  file_rows_.insert(file_rows_.end(), batch.file_rows.begin(), batch.file_rows.end());
}

std::vector<TensorView> PredictionArrays::tensors() {
  std::vector<TensorView> tensors = {
      {.name = "output", .dtype = DType::float32, .shape = extents_, .data = output_.bytes()}};
  if (has_classes()) {
    tensors.push_back({.name = "class",
                       .dtype = DType::int64,
                       .shape = class_extents_,
                       .data = classes_.bytes()});
    tensors.push_back({.name = "probability",
                       .dtype = DType::float32,
                       .shape = class_extents_,
                       .data = probability_.bytes()});
  }
  tensors.push_back(view_of("row", DType::int64, rows_));
  if (!file_rows_.empty()) tensors.push_back(view_of("file_row", DType::int64, file_rows_));
  return tensors;
}

}  // namespace decent
