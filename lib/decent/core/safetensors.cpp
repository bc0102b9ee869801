#include "decent/core/safetensors.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/stored_tensor.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr std::size_t kAlignment = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

// Names in a header, in the order of the enumerators of DType.
constexpr std::array<std::string_view, 10> kDTypeNames = {"BOOL", "U8",  "I8",   "I16", "I32",
                                                          "I64",  "F16", "BF16", "F32", "F64"};
static_assert(kDTypeNames[static_cast<std::size_t>(DType::float64)] == "F64");

std::optional<DType> dtype_from_header(std::string_view name) {
  const auto found = std::find(kDTypeNames.begin(), kDTypeNames.end(), name);
  if (found == kDTypeNames.end()) return std::nullopt;
  return static_cast<DType>(found - kDTypeNames.begin());
}

std::string header_name(DType dtype) {
  return std::string(kDTypeNames[static_cast<std::size_t>(dtype)]);
}

std::string valid_dtypes() {
  return join(std::vector<std::string>(kDTypeNames.begin(), kDTypeNames.end()));
}

// A tensor as its header entry describes it, and the place of its data according to the entry.
struct Entry {
  TensorView tensor;
  std::vector<std::int64_t> offsets;  // begin and end in bytes, counted from the end of the header
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;

  std::int64_t begin() const { return offsets[0]; }
  std::int64_t end() const { return offsets[1]; }
};

// Reads the JSON header event by event. Only the three levels of the format are ever entered, so
// depth and memory are bounded by the length of the header however it nests.
class HeaderReader final : public Json::json_sax_t {
 public:
  explicit HeaderReader(std::string_view file) : file_(file) {}

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  [[noreturn]] void fail(const std::string& message) const {
    throw UserError("'" + std::string(file_) + "': " + message);
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_float(number_float_t, const string_t&) override {
    unexpected("a fraction or a number out of range");
  }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_integer(number_integer_t) override { unexpected("a negative number"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::shape && place_ != Place::data_offsets) unexpected("a number");
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      unexpected("a number out of range");
    }
    std::vector<std::int64_t>& list =
        place_ == Place::shape ? entry().tensor.shape : entry().offsets;
    const std::size_t most = place_ == Place::shape ? kMaxTensorDimensions : 2;
    if (list.size() == most) {
      fail(where() + ": more than " + std::to_string(most) + " numbers in " + field_);
    }
    list.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      if (!metadata.emplace(key_, std::move(value)).second) fail(where() + " is there twice");
      return true;
    }
    if (place_ != Place::tensor || field_ != "dtype") unexpected("a string");
    const std::optional<DType> dtype = dtype_from_header(value);
    if (!dtype) {
      fail(where() + ": unknown dtype " + in_quotes(value) + " (valid: " + valid_dtypes() + ")");
    }
    entry().tensor.dtype = *dtype;
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::file;
    } else if (place_ == Place::file && key_ == kMetadataKey) {
      place_ = Place::metadata;
    } else if (place_ == Place::file) {
      place_ = Place::tensor;
      entries.emplace_back().tensor.name = key_;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::tensor) {
      field_ = std::move(name);
      start_field();
      return true;
    }
    key_ = std::move(name);
    if (place_ == Place::file && key_ == kMetadataKey && std::exchange(has_metadata_, true)) {
      fail("__metadata__ is there twice in its header");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) check_complete();
    place_ = place_ == Place::file ? Place::outside : Place::file;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || field_ == "dtype") unexpected("a list");
    place_ = field_ == "shape" ? Place::shape : Place::data_offsets;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::data_offsets && entry().offsets.size() != 2) {
      fail(where() + ": data_offsets must be two numbers, begin and end");
    }
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail("its header is not valid UTF-8 JSON (at byte " + std::to_string(position) +
         " of the header)");
  }

 private:
  enum class Place { outside, file, metadata, tensor, shape, data_offsets };

  Entry& entry() { return entries.back(); }

  void start_field() {
    bool* seen = field_ == "dtype"          ? &entry().has_dtype
                 : field_ == "shape"        ? &entry().has_shape
                 : field_ == "data_offsets" ? &entry().has_offsets
                                            : nullptr;
    if (seen == nullptr) {
      fail(where() + ": unknown key " + in_quotes(field_) + " (valid: dtype, shape, data_offsets)");
    }
    if (std::exchange(*seen, true)) fail(where() + ": " + field_ + " is there twice");
  }

  void check_complete() {
    const char* missing = !entry().has_dtype     ? "dtype"
                          : !entry().has_shape   ? "shape"
                          : !entry().has_offsets ? "data_offsets"
                                                 : nullptr;
    if (missing != nullptr) fail(where() + " has no " + missing);
  }

  std::string where() const {
    if (place_ == Place::outside) return "its header";
    if (place_ == Place::metadata) return "__metadata__ " + in_quotes(key_);
    if (place_ == Place::file && key_ == kMetadataKey) return "__metadata__";
    return "tensor " + in_quotes(key_);
  }

  std::string expected() const {
    switch (place_) {
      case Place::outside:
        return "an object of tensors";
      case Place::file:
        return key_ == kMetadataKey ? "an object of strings"
                                    : "an object with dtype, shape and data_offsets";
      case Place::metadata:
        return "a string";
      case Place::tensor:
        return field_ == "dtype" ? "dtype as a string" : field_ + " as a list of integers";
      case Place::shape:
      case Place::data_offsets:
        return field_ + " as integers from 0 to 2^63-1";
    }
    __builtin_unreachable();
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    fail(where() + ": found " + found + ", expected " + expected());
  }

  std::string_view file_;
  Place place_ = Place::outside;
  std::string key_;    // of the header: a tensor's name; inside __metadata__: its key
  std::string field_;  // of a tensor's entry
  bool has_metadata_ = false;
};

// Splits the bytes of a file into the text of its header and the data behind it.
std::pair<std::string_view, std::span<const std::byte>> split_file(std::span<const std::byte> bytes,
                                                                   const HeaderReader& reader) {
  if (bytes.size() < kLengthBytes) {
    reader.fail("not a safetensors file: it has " + counted(std::ssize(bytes), "byte") +
                ", too few for the length of a header");
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  if (length > kMaxHeaderBytes) {
    reader.fail("not a safetensors file, or damaged: a header of " + std::to_string(length) +
                " bytes (the most is 100 MB)");
  }
  if (length > bytes.size() - kLengthBytes) {
    reader.fail("truncated, or not a safetensors file: a header of " + std::to_string(length) +
                " bytes in a file of " + std::to_string(bytes.size()));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (!header.starts_with('{')) {
    reader.fail("not a safetensors file: its header does not begin with '{'");
  }
  // The JSON parser would take a zero byte for the end and not look at what follows.
  if (header.find('\0') != header.npos) reader.fail("its header contains a zero byte");
  return {header, bytes.subspan(kLengthBytes + length)};
}

// The number of bytes for dtype and shape, or nothing if it overflows. The check skips extents of
// zero, so that the size of any sub-shape (a sample) cannot overflow either.
std::optional<std::int64_t> byte_size(const TensorView& tensor) {
  auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  bool empty = false;
  for (std::int64_t extent : tensor.shape) {
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bytes;
}

void attach_data(Entry& entry, std::span<const std::byte> data, const HeaderReader& reader) {
  TensorView& tensor = entry.tensor;
  const std::string where = "tensor " + in_quotes(tensor.name) + ": ";
  const std::string range = "data_offsets " + shape_text(entry.offsets);
  if (entry.begin() > entry.end()) reader.fail(where + range + " are reversed");
  if (static_cast<std::size_t>(entry.end()) > data.size()) {
    reader.fail(where + range + " go beyond the " + std::to_string(data.size()) +
                " bytes of data in the file: is it truncated?");
  }
  const std::string shape =
      "shape " + shape_text(tensor.shape) + " of " + header_name(tensor.dtype);
  const std::optional<std::int64_t> size = byte_size(tensor);
  if (!size) reader.fail(where + shape + " is too large");
  if (*size != entry.end() - entry.begin()) {
    reader.fail(where + shape + " takes " + counted(*size, "byte") + ", but " + range + " hold " +
                std::to_string(entry.end() - entry.begin()));
  }
  tensor.data =
      data.subspan(static_cast<std::size_t>(entry.begin()), static_cast<std::size_t>(*size));
}

// Every byte of the data must belong to exactly one tensor: nothing can hide in a file, and a
// damaged one is noticed.
void check_coverage(std::vector<Entry>& entries, std::size_t data_bytes,
                    const HeaderReader& reader) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  const Entry* previous = nullptr;
  std::int64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin() < covered) {
      reader.fail("tensors " + in_quotes(previous->tensor.name) + " and " +
                  in_quotes(entry.tensor.name) + " overlap in the data");
    }
    if (entry.begin() > covered) {
      reader.fail("bytes " + std::to_string(covered) + " to " + std::to_string(entry.begin()) +
                  " of its data, before tensor " + in_quotes(entry.tensor.name) +
                  ", belong to no tensor");
    }
    covered = entry.end();
    previous = &entry;
  }
  if (static_cast<std::size_t>(covered) < data_bytes) {
    const std::int64_t rest = static_cast<std::int64_t>(data_bytes) - covered;
    reader.fail(counted(rest, "byte") + " at its end " + (rest == 1 ? "belongs" : "belong") +
                " to no tensor");
  }
}

void check_names(const std::vector<TensorView>& sorted, const HeaderReader& reader) {
  const auto twice =
      std::adjacent_find(sorted.begin(), sorted.end(),
                         [](const TensorView& a, const TensorView& b) { return a.name == b.name; });
  if (twice != sorted.end()) reader.fail("tensor " + in_quotes(twice->name) + " is there twice");
}

std::string json_string(std::string_view text) { return Json(text).dump(); }

std::string json_entry(const TensorView& tensor, std::size_t begin) {
  assert(byte_size(tensor) == static_cast<std::int64_t>(tensor.data.size()));
  return json_string(tensor.name) + R"(:{"dtype":")" + header_name(tensor.dtype) + R"(","shape":)" +
         shape_text(tensor.shape) + R"(,"data_offsets":[)" + std::to_string(begin) + "," +
         std::to_string(begin + tensor.data.size()) + "]}";
}

std::string json_metadata(const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> items;
  items.reserve(metadata.size());
  for (const auto& [key, value] : metadata) {
    items.push_back(json_string(key) + ":" + json_string(value));
  }
  return json_string(kMetadataKey) + ":{" + join(items, ",") + "}";
}

}  // namespace

const TensorView* Safetensors::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const TensorView& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

Safetensors parse_safetensors(std::span<const std::byte> bytes, std::string_view file) {
  HeaderReader reader(file);
  const auto [header, data] = split_file(bytes, reader);
  Json::sax_parse(header.data(), header.data() + header.size(), &reader);
  for (Entry& entry : reader.entries) attach_data(entry, data, reader);
  check_coverage(reader.entries, data.size(), reader);

  Safetensors result;
  result.metadata = std::move(reader.metadata);
  for (Entry& entry : reader.entries) result.tensors.push_back(std::move(entry.tensor));
  std::sort(result.tensors.begin(), result.tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  check_names(result.tensors, reader);
  return result;
}

std::string safetensors_header(std::span<const TensorView> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> items;
  if (!metadata.empty()) items.push_back(json_metadata(metadata));
  std::size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    items.push_back(json_entry(tensor, offset));
    offset += tensor.data.size();
  }
  std::string json = "{" + join(items, ",") + "}";
  const std::size_t used = kLengthBytes + json.size();
  json.append((kAlignment - used % kAlignment) % kAlignment, ' ');

  std::string header;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    header += static_cast<char>(static_cast<std::uint64_t>(json.size()) >> (8 * i) & 0xFF);
  }
  return header + json;
}

}  // namespace decent
