// TensorProto.

#include <algorithm>
#include <charconv>
#include <utility>

#include "decent/core/stored_tensor.h"
#include "decent/core/text.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/format/typed_data.h"

namespace decent::onnx {
namespace {

constexpr std::int64_t kExternal = 1;  // TensorProto.DataLocation

// Elements may come in several pieces. Empty pieces, which some writers leave behind, do not count.
bool is_empty_piece(const Field& field) {
  return field.number != 6 && field.type == WireType::bytes && field.content.size() == 0;
}

class TensorParser {
 public:
  TensorParser(const Message& message, const Surroundings& around, const std::string& owner)
      : message_(message), around_(around), owner_(owner) {}

  Tensor parse();

 private:
  void read_fields();
  void read_field(Fields& fields, const Field& field);
  void note_typed(const Field& field);
  void read_external_entry(const Field& field);
  std::uint64_t size_in_file(const std::string& text, const char* key) const;
  void check_type();
  std::uint64_t check_dims() const;
  void take_external(std::uint64_t size);
  void take_raw(std::uint64_t size);
  void take_typed(std::uint64_t count);
  void check_booleans() const;

  std::string what() const;
  std::string type_text() const;
  [[noreturn]] void fail(const std::string& why) const { input().fail(what() + ": " + why); }
  Input& input() const { return message_.input(); }

  const Message& message_;
  const Surroundings& around_;
  const std::string& owner_;
  Tensor tensor_;
  std::int64_t type_ = 0;
  std::int64_t location_ = 0;
  bool has_external_file_ = false;
  ExternalPlace place_;
  std::vector<ByteRange> external_fields_;
  std::optional<Field> raw_;
  std::uint32_t typed_ = 0;  // number of the typed field that has elements, if one has
  std::uint64_t typed_fields_ = 0;
};

Tensor TensorParser::parse() {
  read_fields();
  check_type();
  const std::uint64_t count = check_dims();
  const std::uint64_t size = count * size_of(tensor_.type);
  if (location_ == kExternal) {
    take_external(size);
  } else if (raw_) {
    take_raw(size);
  } else {
    take_typed(count);
  }
  check_booleans();
  return std::move(tensor_);
}

void TensorParser::read_fields() {
  // Reads the name first, for messages, because in the file it comes after elements in typed
  // fields.
  for (Fields fields(message_); const Field* field = fields.next();) {
    if (field->number != 8) continue;
    fields.once();
    tensor_.name = message_.text(*field);
  }
  for (Fields fields(message_); const Field* field = fields.next();) read_field(fields, *field);
}

void TensorParser::read_field(Fields& fields, const Field& field) {
  switch (field.number) {
    case 1:
      append_integers(message_, field, tensor_.dims);
      break;
    case 2:
      fields.once();
      type_ = message_.integer(field);
      break;
    case 3:
      fail("it is a segment of a tensor; only whole tensors are read");
    case 4:
    case 5:
    case 6:
    case 7:
    case 10:
    case 11:
      note_typed(field);
      break;
    case 9:
      fields.once();
      message_.require(field, WireType::bytes);
      raw_ = field;
      break;
    case 13:
      read_external_entry(field);
      break;
    case 14:
      fields.once();
      location_ = message_.integer(field);
      break;
    default:
      break;
  }
}

void TensorParser::note_typed(const Field& field) {
  if (is_empty_piece(field)) return;
  if (typed_ != 0 && typed_ != field.number) {
    fail("has elements in both " + std::string(name_of_data_field(typed_)) + " and " +
         std::string(name_of_data_field(field.number)) + "; one may hold them");
  }
  typed_ = field.number;
  ++typed_fields_;
}

void TensorParser::read_external_entry(const Field& field) {
  const Message entry = message_.open(field, "StringStringEntryProto");
  input().charge(3 * sizeof(ByteRange));
  external_fields_.push_back(field.range);
  std::string key;
  std::string value;
  for (Fields fields(entry); const Field* part = fields.next();) {
    if (part->number == 1) key = entry.text(*part);
    if (part->number == 2) value = entry.text(*part);
  }
  if (key == "location") {
    if (std::exchange(has_external_file_, true)) fail("names two files for its external data");
    place_.location = value;
  } else if (key == "offset") {
    place_.offset = size_in_file(value, "offset");
  } else if (key == "length") {
    place_.length = size_in_file(value, "length");
  }
}

std::uint64_t TensorParser::size_in_file(const std::string& text, const char* key) const {
  std::int64_t size = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size < 0) {
    fail("the " + std::string(key) + " of its external data is " + in_quotes(text) +
         ", not a number of bytes");
  }
  return static_cast<std::uint64_t>(size);
}

void TensorParser::check_type() {
  tensor_.type = element_type(type_);
  if (tensor_.type == ElementType::undefined) fail("has elements of " + refused_type_text(type_));
}

// Checks that no product of any dims overflows, and so leaves out those that are 0.
std::uint64_t TensorParser::check_dims() const {
  if (tensor_.dims.size() > kMaxTensorDimensions) {
    fail("has " + std::to_string(tensor_.dims.size()) + " dims, at most " +
         std::to_string(kMaxTensorDimensions) + " are read");
  }
  std::int64_t product =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(size_of(tensor_.type)));
  bool empty = false;
  for (const std::int64_t dim : tensor_.dims) {
    if (dim < 0) fail("its dims are " + shape_text(tensor_.dims) + "; none may be negative");
    empty = empty || dim == 0;
    if (dim > 0 && __builtin_mul_overflow(product, dim, &product)) {
      fail("its dims are " + shape_text(tensor_.dims) + ", too large for any memory");
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(tensor_.count());
}

void TensorParser::take_external(std::uint64_t size) {
  tensor_.encoding = Encoding::external;
  if (raw_ || typed_ != 0) fail("has elements both in the model file and in another one");
  if (tensor_.type == ElementType::string) fail("holds strings, which cannot be external data");
  if (around_.external == nullptr) {
    fail("its elements are in another file; here they must be in this one");
  }
  if (!has_external_file_) fail("its elements are in another file, which is not named");
  place_.location = checked_location(input(), place_.location, what());
  tensor_.bytes = around_.external->claim(place_, size, what());
  tensor_.fields = std::move(external_fields_);
  tensor_.location = place_.location;
  tensor_.offset = place_.offset;
}

void TensorParser::take_raw(std::uint64_t size) {
  tensor_.encoding = Encoding::raw;
  if (typed_ != 0) {
    fail("has elements in both raw_data and " + std::string(name_of_data_field(typed_)) +
         "; one may hold them");
  }
  if (tensor_.type == ElementType::string) fail("holds strings, which cannot be in raw_data");
  tensor_.bytes = message_.bytes(*raw_);
  tensor_.fields = {raw_->range};
  if (tensor_.bytes.size() != size) {
    fail("raw_data has " + std::to_string(tensor_.bytes.size()) + " bytes, " + type_text() +
         " takes " + std::to_string(size));
  }
}

void TensorParser::take_typed(std::uint64_t count) {
  tensor_.encoding = Encoding::typed;
  const TypedField expected = typed_field_of(tensor_.type);
  if (typed_ != 0 && typed_ != expected.number) {
    fail("has elements in " + std::string(name_of_data_field(typed_)) + "; those of " +
         std::string(name_of(tensor_.type)) + " are in " + std::string(expected.name));
  }
  const bool is_string = tensor_.type == ElementType::string;
  std::uint64_t found = 0;
  input().charge(typed_fields_ * sizeof(ByteRange));
  tensor_.fields.reserve(typed_fields_);
  for (Fields fields(message_); const Field* field = fields.next();) {
    if (typed_ == 0 || field->number != typed_ || is_empty_piece(*field)) continue;
    if (is_string) message_.require(*field, WireType::bytes);
    found += is_string ? 1 : count_numbers(message_, *field, expected.kind);
    tensor_.fields.push_back(field->range);
  }
  if (found != count) {
    fail("has " + std::to_string(found) + " elements, " + type_text() + " takes " +
         std::to_string(count));
  }
  if (!is_string) tensor_.decoded = decode_typed(message_, tensor_.type, count, what());
}

// A bool with another value than 0 or 1 is undefined behaviour wherever it is used.
void TensorParser::check_booleans() const {
  if (tensor_.type != ElementType::boolean) return;
  const std::span<const std::byte> bytes = tensor_.elements();
  if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; })) {
    fail("has a bool that is neither 0 nor 1");
  }
}

std::string TensorParser::what() const {
  return tensor_.name.empty() ? owner_ : "tensor " + in_quotes(tensor_.name);
}

std::string TensorParser::type_text() const {
  return std::string(name_of(tensor_.type)) + " " + shape_text(tensor_.dims);
}

}  // namespace

Tensor parse_tensor(const Message& message, const Surroundings& around, const std::string& owner) {
  return TensorParser(message, around, owner).parse();
}

Tensor read_tensor(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  Input input(bytes, path);
  return parse_tensor(Message(input, {0, bytes.size()}, "TensorProto"), {}, "the tensor");
}

}  // namespace decent::onnx
