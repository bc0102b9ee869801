#include "decent/data/transforms/image_pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/transforms/resample.h"

namespace decent {
namespace {

constexpr double kMostSide = 32768;  // of a side

// `change(in, out)` writes an image of that size to `out`. The memory of replaced images is used
// again; each thread has its own.
template <class Change>
void replace(HostArray& image, ImageSize size, const Change& change) {
  thread_local std::vector<std::byte> spare;
  const std::int64_t channels = image.shape.at(0);
  spare.resize(static_cast<std::size_t>(channels * size.height * size.width) * sizeof(float));
  change(image.as<float>().data(), reinterpret_cast<float*>(spare.data()));
  std::swap(image.bytes, spare);
  image.shape = {channels, size.height, size.width};
}

}  // namespace

OptionKey size_key(std::string meaning) {
  return {.name = "size",
          .type = OptionType::integers,
          .meaning = std::move(meaning),
          .range = within(1, kMostSide)};
}

ImageSize image_size(const std::vector<std::int64_t>& size, const std::string& who) {
  if (size.size() == 1) return {size[0], size[0]};
  if (size.size() == 2) return {size[0], size[1]};
  throw UserError(who + ": size: expected n or [height, width], not " +
                  counted(static_cast<std::int64_t>(size.size()), "value"));
}

Bounds bounds_of(const Options& options, const std::string& key, const std::string& who) {
  const auto& values = options.get<std::vector<double>>(key);
  if (values.size() != 2 || values[0] > values[1])
    throw UserError(who + ": " + key + ": expected [least, most]");
  return {values[0], values[1]};
}

ImageSize with_shorter_side(ImageSize size, std::int64_t shorter) {
  if (size.width <= size.height) return {shorter * size.height / size.width, shorter};
  return {shorter, shorter * size.width / size.height};
}

std::array<double, 2> draw_sides(ImageSize whole, Bounds share, Bounds ratio,
                                 SampleRandom& random) {
  const double area = static_cast<double>(whole.height) * static_cast<double>(whole.width) *
                      random.uniform(share.low, share.high);
  const double drawn = std::exp(random.uniform(std::log(ratio.low), std::log(ratio.high)));
  return {std::nearbyint(std::sqrt(area * drawn)), std::nearbyint(std::sqrt(area / drawn))};
}

ImagePart anywhere_in(ImageSize whole, ImageSize part, SampleRandom& random) {
  const std::int64_t top = random.integer(whole.height - part.height + 1);
  const std::int64_t left = random.integer(whole.width - part.width + 1);
  return {top, left, part};
}

void resize_part(HostArray& image, const ImagePart& part, ImageSize size, PixelKind kind) {
  const ImageSize whole = size_of_image(image.shape);
  if (part.size == size) {
    if (part.size != whole) cut(image, part, 0);
    return;
  }
  replace(image, size, [&](const float* in, float* out) {
    const ImageView<float> view{.data = in + part.top * whole.width + part.left,
                                .size = part.size,
                                .row_stride = whole.width,
                                .channel_stride = whole.height * whole.width,
                                .channels = image.shape[0]};
    kind == PixelKind::classes ? resample_nearest(view, size, out) : resample(view, size, out);
  });
}

void cut(HostArray& image, const ImagePart& part, float fill) {
  const ImageSize whole = size_of_image(image.shape);
  // The columns of the part that are inside the image.
  const std::int64_t begin = std::clamp<std::int64_t>(-part.left, 0, part.size.width);
  const std::int64_t end =
      std::clamp<std::int64_t>(whole.width - part.left, begin, part.size.width);
  replace(image, part.size, [&](const float* in, float* out) {
    for (std::int64_t c = 0; c < image.shape[0]; ++c, in += whole.height * whole.width) {
      for (std::int64_t y = 0; y < part.size.height; ++y, out += part.size.width) {
        const std::int64_t row = part.top + y;
        const bool inside = row >= 0 && row < whole.height && begin < end;
        if (!inside || end - begin < part.size.width) std::fill_n(out, part.size.width, fill);
        if (inside)
          std::copy_n(in + row * whole.width + part.left + begin, end - begin, out + begin);
      }
    }
  });
}

}  // namespace decent
