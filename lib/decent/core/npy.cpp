#include "decent/core/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxDimensions = 32;  // numpy's own limit until 2.0

[[noreturn]] void fail_damaged(std::string_view name, const std::string& what) {
  throw UserError(std::string(name) + ": not a .npy array: its header is damaged (" + what + ")");
}

// Reads the Python dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3,
// 4), }
class NpyHeaderReader {
 public:
  NpyHeaderReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  NpyLayout layout() {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      read_value(key);
      if (!accept(',') && peek() != '}') fail("a comma is missing");
    }
    if (!descr_ || !order_ || !shape_) fail("it lacks one of descr, fortran_order, shape");
    return {.descr = *descr_, .shape = *shape_, .fortran_order = *order_, .data_offset = 0};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_damaged(name_, what); }

  void skip_space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) {
      text_.remove_prefix(1);
    }
  }
  char peek() {
    skip_space();
    return text_.empty() ? '\0' : text_[0];
  }
  bool accept(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }

  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a text");
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) fail("a text does not end");
    std::string result(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return result;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true},
                                      std::pair<std::string_view, bool>{"False", false}}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    fail("expected True or False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t value = -1;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) fail("a dimension is no count");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      values.push_back(value);
      if (values.size() > kMaxDimensions) fail("it has too many dimensions");
      if (!accept(',') && peek() != ')') fail("a comma is missing");
    }
    return values;
  }

  void read_value(const std::string& key) {
    if (key == "descr") {
      if (peek() == '[') {
        throw UserError(std::string(name_) +
                        ": records are not supported; save each field as an "
                        "array of its own");
      }
      descr_ = quoted();
    } else if (key == "fortran_order") {
      order_ = boolean();
    } else if (key == "shape") {
      shape_ = tuple();
    } else {
      fail("unknown key '" + key.substr(0, 40) + "'");
    }
  }

  std::string_view text_;
  std::string_view name_;
  std::optional<std::string> descr_;
  std::optional<bool> order_;
  std::optional<std::vector<std::int64_t>> shape_;
};

DType dtype_of_descr(const std::string& descr, std::string_view name) {
  static const std::map<std::string, DType> known = {
      {"|b1", DType::boolean}, {"|u1", DType::uint8},   {"|i1", DType::int8},
      {"<i2", DType::int16},   {"<i4", DType::int32},   {"<i8", DType::int64},
      {"<f2", DType::float16}, {"<f4", DType::float32}, {"<f8", DType::float64}};
  const auto found = known.find(descr);
  if (found != known.end()) return found->second;
  const bool big_endian = descr.starts_with('>');
  throw UserError(
      std::string(name) + ": elements of type '" + descr.substr(0, 40) + "' are not supported" +
      (big_endian
           ? " (big-endian; array.astype('<" + descr.substr(1, 10) + "') can be saved instead)"
           : "; valid: bool, uint8, int8, int16, int32, int64, float16, float32, float64"));
}

std::size_t bytes_of(const NpyHeader& header, std::string_view name) {
  std::size_t bytes = size_of(header.dtype);
  for (std::int64_t extent : header.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes) ||
        bytes > static_cast<std::size_t>(INT64_MAX)) {
      fail_damaged(name, "its shape " + shape_text(header.shape) + " is too large");
    }
  }
  return bytes;
}

// The dictionary of a header at the start of `bytes`.
std::string_view header_text(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto broken = [&](const std::string& what) {
    return UserError(std::string(name) + ": not a .npy array: " + what);
  };
  if (!text.starts_with(kMagic) || text.size() < kMagic.size() + 2) {
    throw broken("it does not begin as one");
  }
  const int version = static_cast<unsigned char>(text[kMagic.size()]);
  if (version < 1 || version > 3) throw broken("version " + std::to_string(version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t begin = kMagic.size() + 2 + length_bytes;
  if (text.size() < begin) throw broken("it is cut short");
  std::uint32_t length = 0;  // little-endian, as this program's machines are
  std::memcpy(&length, text.data() + kMagic.size() + 2, length_bytes);
  if (text.size() - begin < length) throw broken("its header is cut short");
  return text.substr(begin, length);
}

}  // namespace

NpyLayout parse_npy_layout(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text = header_text(bytes, name);
  NpyLayout layout = NpyHeaderReader(text, name).layout();
  layout.data_offset =
      static_cast<std::size_t>(std::as_bytes(std::span(text)).data() + text.size() - bytes.data());
  return layout;
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view name) {
  NpyHeader header{parse_npy_layout(bytes, name)};
  header.dtype = dtype_of_descr(header.descr, name);
  header.data_bytes = bytes_of(header, name);
  return header;
}

std::vector<std::byte> to_c_order(std::span<const std::byte> data, const NpyHeader& header) {
  const std::size_t element = size_of(header.dtype);
  const std::size_t dims = header.shape.size();
  std::vector<std::size_t> stride(dims, element);  // in the Fortran order
  for (std::size_t d = 1; d < dims; ++d) {
    stride[d] = stride[d - 1] * static_cast<std::size_t>(header.shape[d - 1]);
  }
  std::vector<std::byte> result(data.size());
  std::vector<std::int64_t> index(dims);
  std::size_t from = 0;
  for (std::size_t to = 0; to < result.size(); to += element) {
    std::memcpy(result.data() + to, data.data() + from, element);
    for (std::size_t d = dims; d-- > 0;) {  // the last index moves fastest
      from += stride[d];
      if (++index[d] < header.shape[d]) break;
      from -= stride[d] * static_cast<std::size_t>(header.shape[d]);
      index[d] = 0;
    }
  }
  return result;
}

}  // namespace decent
