#include "decent/data/other_kinds.h"

#include "decent/core/error.h"

namespace decent {
namespace {

// Advice for tensors and arrays that only Python can read.
std::string by_numpy(const std::string& read) {
  return read +
         " reads it in Python, and numpy.savez(\"data.npz\", x=x, y=y) writes what "
         "`format: npz` reads";
}

std::string way_to_read(FileKind kind) {
  switch (kind) {
    case FileKind::safetensors:
      return "`format: safetensors` reads it";
    case FileKind::npz:
      return "`format: npz` reads it";
    case FileKind::npy:
      return by_numpy("numpy.load");
    case FileKind::torch_save:
      return by_numpy("torch.load");
    case FileKind::pickle:
      return by_numpy("pickle.load");
    case FileKind::hdf5:
      return by_numpy("h5py.File");
    case FileKind::parquet:
      return "pandas.read_parquet reads it in Python, and to_csv(\"data.csv\", index=False) writes "
             "what `format: csv` reads";
    case FileKind::torchscript:
    case FileKind::torch_export:
      return "model.path is for models";
    case FileKind::tar:
      return "`format: webdataset` reads images and labels in it";
    case FileKind::gzip:
      return "gunzip decompresses it";
    case FileKind::image:
      return "`format: images` reads folders and lists of images";
    case FileKind::text:
      return "`format: csv` reads tables, and `format: text` other texts";
    case FileKind::zip:
    case FileKind::unknown:
      break;
  }
  return "unzip unpacks it";
}

std::string wanted_text(FileKind wanted) {
  return wanted == FileKind::unknown ? "what the format is for" : kind_text(wanted);
}

}  // namespace

void refuse_other_kinds(std::span<const std::byte> bytes, const std::string& file,
                        FileKind wanted) {
  const FileKind kind = kind_of_file(bytes);
  const bool damaged = kind == FileKind::zip && wanted == FileKind::npz;
  if (kind == wanted || kind == FileKind::unknown || damaged) return;
  throw UserError("'" + file + "' is " + kind_text(kind) + ", not " + wanted_text(wanted) + ": " +
                  way_to_read(kind));
}

}  // namespace decent
