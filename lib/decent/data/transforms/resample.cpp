#include "decent/data/transforms/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace decent {
namespace {

// The inputs of an output, and their shares.
struct Taps {
  std::size_t first = 0;
  std::span<const float> weights;
};

// The taps of all outputs along one side. As in PyTorch, they form a triangle whose half width is
// one input, or one output if outputs are larger.
class Side {
 public:
  Side(std::int64_t in, std::int64_t out) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    const double reach = std::max(scale, 1.0);
    weights_.reserve(static_cast<std::size_t>(out) * (2 * static_cast<std::size_t>(reach) + 2));
    for (std::int64_t i = 0; i < out; ++i) {
      const double center = scale * (static_cast<double>(i) + 0.5);
      const auto begin =
          std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(center - reach + 0.5)), 0);
      const auto end =
          std::min<std::int64_t>(static_cast<std::int64_t>(std::floor(center + reach + 0.5)), in);
      add(begin, end, center, reach);
    }
  }

  std::size_t size() const { return firsts_.size(); }
  Taps operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {firsts_[i], {weights_.data() + begin, ends_[i] - begin}};
  }

 private:
  void add(std::int64_t begin, std::int64_t end, double center, double reach) {
    const auto share = [&](std::int64_t at) {
      return std::max(0.0, 1 - std::abs(static_cast<double>(at) + 0.5 - center) / reach);
    };
    double sum = 0;
    for (std::int64_t at = begin; at < end; ++at) sum += share(at);
    for (std::int64_t at = begin; at < end; ++at)
      weights_.push_back(static_cast<float>(share(at) / sum));
    firsts_.push_back(static_cast<std::size_t>(begin));
    ends_.push_back(weights_.size());
  }

  std::vector<float> weights_;
  std::vector<std::size_t> firsts_, ends_;
};

// The number of output rows that are computed at a time, side by side, so that loops over them
// vectorise whatever the number of channels.
constexpr std::size_t kRowsAtOnce = 8;

// Computes one row of the output's height, which still has the input's width.
template <class T>
void mix_rows(const T* first_row, std::int64_t stride, std::span<const float> weights,
              std::size_t length, float* __restrict out) {
  const float first = weights[0];
  for (std::size_t i = 0; i < length; ++i) out[i] = first * static_cast<float>(first_row[i]);
  const T* row = first_row + stride;
  std::size_t tap = 1;
  for (; tap + 1 < weights.size(); tap += 2, row += 2 * stride) {
    const float a = weights[tap];
    const float b = weights[tap + 1];
    const T* __restrict next = row + stride;
    for (std::size_t i = 0; i < length; ++i) {
      const float sum = out[i] + a * static_cast<float>(row[i]);
      out[i] = sum + b * static_cast<float>(next[i]);
    }
  }
  if (tap == weights.size()) return;
  const float last = weights[tap];
  for (std::size_t i = 0; i < length; ++i) out[i] += last * static_cast<float>(row[i]);
}

// Copies rows[r * length + i] to out[i * kRowsAtOnce + r].
void side_by_side(const float* __restrict rows, std::size_t length, float* __restrict out) {
  for (std::size_t i = 0; i < length; ++i) {
    for (std::size_t r = 0; r < kRowsAtOnce; ++r) out[i * kRowsAtOnce + r] = rows[r * length + i];
  }
}

// Mixes the columns of kRowsAtOnce rows. `in` has the rows side by side, with `step` values for
// each pixel.
void mix_columns(const float* in, std::size_t step, const Side& taps, float scale,
                 float* __restrict out) {
  for (std::size_t i = 0; i < taps.size(); ++i) {
    const Taps tap = taps[i];
    float sums[kRowsAtOnce] = {};
    const float* at = in + tap.first * step * kRowsAtOnce;
    for (const float weight : tap.weights) {
      for (std::size_t r = 0; r < kRowsAtOnce; ++r) sums[r] += weight * at[r];
      at += step * kRowsAtOnce;
    }
    for (std::size_t r = 0; r < kRowsAtOnce; ++r) out[r] = sums[r] * scale;
    out += kRowsAtOnce;
  }
}

// Writes the planes of `step` channels, which are interleaved in the rows of `in`, from `out` on.
template <class T>
void resample_plane(const T* in, std::int64_t row_stride, std::size_t step, const Side& rows,
                    const Side& columns, std::size_t in_width, float scale, float* out) {
  const std::size_t length = in_width * step;
  const std::size_t width = columns.size();
  std::vector<float> mixed(kRowsAtOnce * length), beside(kRowsAtOnce * length),
      done(kRowsAtOnce * width);
  for (std::size_t y = 0; y < rows.size(); y += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, rows.size() - y);
    for (std::size_t r = 0; r < count; ++r) {
      const Taps tap = rows[y + r];
      mix_rows(in + static_cast<std::int64_t>(tap.first) * row_stride, row_stride, tap.weights,
               length, &mixed[r * length]);
    }
    side_by_side(mixed.data(), length, beside.data());
    for (std::size_t c = 0; c < step; ++c) {
      mix_columns(beside.data() + c * kRowsAtOnce, step, columns, scale, done.data());
      float* plane = out + (c * rows.size() + y) * width;
      for (std::size_t r = 0; r < count; ++r) {
        for (std::size_t x = 0; x < width; ++x) plane[r * width + x] = done[x * kRowsAtOnce + r];
      }
    }
  }
}

}  // namespace

void resample(const ImageView<float>& in, ImageSize size, float* out) {
  const Side rows(in.size.height, size.height);
  const Side columns(in.size.width, size.width);
  for (std::int64_t c = 0; c < in.channels; ++c) {
    resample_plane(in.data + c * in.channel_stride, in.row_stride, 1, rows, columns,
                   static_cast<std::size_t>(in.size.width), 1.0F,
                   out + c * size.height * size.width);
  }
}

void resample(const ImageView<std::uint8_t>& in, ImageSize size, float* out) {
  resample_plane(in.data, in.row_stride, static_cast<std::size_t>(in.channels),
                 Side(in.size.height, size.height), Side(in.size.width, size.width),
                 static_cast<std::size_t>(in.size.width), 1.0F / 255, out);
}

// PyTorch computes the places in float32, so that other types would give others.
std::vector<std::int64_t> nearest_places(std::int64_t in, std::int64_t out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < out; ++i) {
    const auto place = static_cast<std::int64_t>(static_cast<float>(i) * scale);
    places.push_back(std::min(place, in - 1));
  }
  return places;
}

}  // namespace decent
