// Predictions of a class for each pixel as a folder of masks: PNG files, gray, one byte a pixel.

#include <png.h>

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/host.h"
#include "decent/core/text.h"
#include "decent/report/predictions/formats.h"

namespace decent {
namespace {

namespace fs = std::filesystem;

std::string png_of(std::vector<std::uint8_t>& pixels, std::int64_t height, std::int64_t width,
                   const fs::path& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.format = PNG_FORMAT_GRAY;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string content(size, '\0');
  if (png_image_write_to_memory(&image, content.data(), &size, /*convert_to_8_bit=*/0,
                                pixels.data(), /*row_stride=*/0, /*colormap=*/nullptr) == 0)
    throw WriteError("cannot write '" + file.string() + "': " + std::string(image.message));
  content.resize(size);
  return content;
}

// Appears whole under its name, as a file does.
class PngPredictions final : public PredictionFile {
 public:
  // `path` ends in a slash.
  explicit PngPredictions(const fs::path& path)
      : path_(path.parent_path()),
        temporary_(path_.string() + "." + random_name(kRandomDigits) + ".tmp") {
    std::error_code failed;
    fs::create_directory(temporary_, failed);
    if (failed) throw WriteError("cannot write '" + path_.string() + "': " + failed.message());
  }

  ~PngPredictions() override {
    std::error_code failed;
    if (!temporary_.empty()) fs::remove_all(temporary_, failed);
  }

  void add(const PredictionBatch& batch) override {
    const std::vector<std::int64_t> extents = extents_of(batch);
    const auto pixels = static_cast<std::size_t>(extents[0] * extents[1]);
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      std::vector<std::uint8_t> mask;
      for (const std::int64_t each : batch.classes->values.subspan(i * pixels, pixels)) {
        if (each > kMaxClass)
          refuse("the output has class " + std::to_string(each) + "; a mask holds classes up to " +
                 std::to_string(kMaxClass));
        mask.push_back(static_cast<std::uint8_t>(each));
      }
      write(name_of(batch, i), mask, extents);
    }
  }

  void finish() override {
    sync_tree(temporary_);
    rename_durably(temporary_, path_);
    temporary_.clear();
  }

 private:
  static constexpr std::size_t kRandomDigits = 8;
  static constexpr std::int64_t kMaxClass = 255;

  [[noreturn]] void refuse(const std::string& problem) const {
    throw UserError("--predict '" + path_.string() + "/': " + problem);
  }

  // Height and width. The output of a loss of events may have one channel.
  std::vector<std::int64_t> extents_of(const PredictionBatch& batch) const {
    if (!batch.classes) refuse("masks need a loss with classes or events");
    std::vector<std::int64_t> shape(batch.classes->shape.begin() + 1, batch.classes->shape.end());
    if (shape.size() == 3 && shape[0] == 1) shape.erase(shape.begin());
    if (shape.size() == 2 && shape[0] > 0 && shape[1] > 0) return shape;
    refuse("masks need a class for each pixel, [height, width]; the classes of a sample are " +
           shape_text(shape));
  }

  // The name of the image with another ending, or the number of the sample.
  fs::path name_of(const PredictionBatch& batch, std::size_t sample) const {
    if (batch.files.empty() || !batch.file_rows.empty())
      return std::to_string(batch.rows[sample]) + ".png";
    fs::path name = fs::path(batch.files[sample]).relative_path().lexically_normal();
    if (name.empty() || *name.begin() == "..")
      refuse("the image '" + batch.files[sample] + "' is not in the folder of its data");
    return name.replace_extension(".png");
  }

  void write(const fs::path& name, std::vector<std::uint8_t>& mask,
             const std::vector<std::int64_t>& extents) const {
    const fs::path file = temporary_ / name;
    std::error_code failed;
    if (fs::exists(file, failed))
      refuse("two images would have the mask '" + name.string() + "'; rename one");
    create_folders(file.parent_path());
    AtomicFile output(file);
    output.write(png_of(mask, extents[0], extents[1], file));
    output.check();
    output.rename();
  }

  fs::path path_;
  fs::path temporary_;
};

std::unique_ptr<PredictionFile> open_png(const fs::path& path,
                                         const std::vector<std::string>& /*class_names*/) {
  return std::make_unique<PngPredictions>(path);
}

}  // namespace

PredictionFormat png_predictions() { return {.extension = "/", .open = open_png}; }

}  // namespace decent
