// NodeProto and AttributeProto.

#include <array>
#include <string_view>
#include <utility>

#include "decent/core/text.h"
#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/wire.h"

namespace decent::onnx {
namespace {

// AttributeProto.AttributeType, and the field that holds a value of that type.
struct AttributeKind {
  std::string_view name;
  std::uint32_t field = 0;
  bool one = false;       // not a list
  bool may_miss = false;  // absent if an empty list, or if 0 or "", which proto3 omits
  bool supported = true;
};
constexpr std::array<AttributeKind, 15> kKinds = {{
    {"undefined", 0, false, false, false},
    {"float", 2, true, true},
    {"int", 3, true, true},
    {"string", 4, true, true},
    {"tensor", 5, true},
    {"graph", 6, true},
    {"floats", 7, false, true},
    {"ints", 8, false, true},
    {"strings", 9, false, true},
    {"tensors", 10, false, true},
    {"graphs", 11, false, true, false},
    {"sparse_tensor", 22, true, false, false},
    {"sparse_tensors", 23, false, true, false},
    {"type_proto", 14, true},
    {"type_protos", 15, false, true},
}};

constexpr std::uint64_t kNodeNameCost = sizeof(std::string) + sizeof(ByteRange);

class AttributeParser {
 public:
  AttributeParser(const Message& message, const Field& field, const Surroundings& around,
                  const std::string& node)
      : message_(message), around_(around), node_(node) {
    attribute_.field = field.range;
  }

  Attribute parse();

 private:
  void read_header();
  void choose_kind();
  void read_values();
  void read_value(const Field& field);
  template <typename T>
  std::vector<T>& list() {
    return std::get<std::vector<T>>(attribute_.value);
  }
  void make_value();

  std::string what() const { return "attribute " + in_quotes(attribute_.name) + " of " + node_; }
  [[noreturn]] void fail(const std::string& why) const {
    message_.input().fail(what() + " " + why);
  }

  const Message& message_;
  const Surroundings& around_;
  const std::string& node_;
  Attribute attribute_;
  std::int64_t type_ = 0;
  std::size_t kind_ = 0;
  std::array<std::uint64_t, kFieldNumbers> counts_{};
};

Attribute AttributeParser::parse() {
  read_header();
  if (attribute_.name.empty()) message_.input().fail(node_ + " has an attribute without a name");
  choose_kind();
  if (!attribute_.ref_attr_name.empty()) {
    if (!around_.in_function) fail("refers to an attribute of a function, and stands in none");
    return std::move(attribute_);
  }
  make_value();
  read_values();
  return std::move(attribute_);
}

void AttributeParser::read_header() {
  for (Fields fields(message_); const Field* field = fields.next();) {
    if (field->number < kFieldNumbers) ++counts_[field->number];
    if (field->number == 1) {
      fields.once();
      attribute_.name = message_.text(*field);
    } else if (field->number == 20) {
      fields.once();
      type_ = message_.integer(*field);
    } else if (field->number == 21) {
      fields.once();
      attribute_.ref_attr_name = message_.text(*field);
    }
  }
}

// The type is given, or, in files of the first versions, follows from the only field that is
// present.
void AttributeParser::choose_kind() {
  std::size_t values = 0;
  std::size_t present = 0;
  for (std::size_t kind = 1; kind < kKinds.size(); ++kind) {
    if (counts_[kKinds[kind].field] == 0) continue;
    ++values;
    present = kind;
  }
  if (values > 1) fail("has values of two types");
  if (type_ < 0 || type_ >= static_cast<std::int64_t>(kKinds.size())) {
    fail("has the unknown type " + std::to_string(type_));
  }
  kind_ = type_ == 0 ? present : static_cast<std::size_t>(type_);
  if (kind_ == 0 && attribute_.ref_attr_name.empty()) fail("has neither a type nor a value");
  const AttributeKind& kind = kKinds[kind_];
  if (values == 1 && present != kind_) {
    fail("is of type " + std::string(kind.name) + " and has a value of type " +
         std::string(kKinds[present].name));
  }
  if (!attribute_.ref_attr_name.empty()) {
    if (values > 0) fail("has both a value and the name of a function's attribute");
    return;
  }
  if (!kind.supported) fail("is of type " + std::string(kind.name) + ", which is not read");
  if (values == 0 && !kind.may_miss) fail("has no value");
  if (kind.one && counts_[kind.field] > 1) fail("has two values, and may have one");
}

void AttributeParser::make_value() {
  constexpr std::size_t kFloat = 1, kInt = 2, kString = 3;
  switch (kind_) {
    case kFloat:
      attribute_.value = 0.0F;
      break;
    case kInt:
      attribute_.value = std::int64_t{0};
      break;
    case kString:
      attribute_.value = std::string();
      break;
    case 6:
      attribute_.value = std::vector<float>();
      break;
    case 7:
      attribute_.value = std::vector<std::int64_t>();
      break;
    case 8:
      message_.input().charge(counts_[9] * sizeof(std::string));
      attribute_.value.emplace<std::vector<std::string>>().reserve(counts_[9]);
      break;
    case 9:
      message_.input().charge(counts_[10] * sizeof(Tensor));
      attribute_.value.emplace<std::vector<Tensor>>().reserve(counts_[10]);
      break;
    default:
      break;
  }
}

void AttributeParser::read_values() {
  for (Fields fields(message_); const Field* field = fields.next();) {
    if (field->number == kKinds[kind_].field) read_value(*field);
  }
}

void AttributeParser::read_value(const Field& field) {
  switch (field.number) {
    case 2:
      attribute_.value = message_.real(field);
      break;
    case 3:
      attribute_.value = message_.integer(field);
      break;
    case 4:
      attribute_.value = message_.text(field);
      break;
    case 5:
      attribute_.value = parse_tensor(message_.open(field, "TensorProto"), around_, what());
      break;
    case 6:
      message_.input().charge(sizeof(Graph));
      attribute_.value =
          std::make_shared<Graph>(parse_graph(message_.open(field, "GraphProto"), field, around_));
      break;
    case 7:
      append_reals(message_, field, list<float>());
      message_.input().charge(sizeof(ByteRange));
      attribute_.number_fields.push_back(field.range);
      break;
    case 8:
      append_integers(message_, field, list<std::int64_t>());
      break;
    case 9:
      list<std::string>().push_back(message_.text(field));
      break;
    case 10:
      list<Tensor>().push_back(parse_tensor(message_.open(field, "TensorProto"), around_, what()));
      break;
    default:  // a TypeProto: no operator that trains has one
      break;
  }
}

void read_node_field(const Message& message, Fields& fields, const Field& field, Node& node) {
  switch (field.number) {
    case 1:
      node.inputs.push_back(message.text(field));
      node.input_fields.push_back(field.range);
      break;
    case 2:
      node.outputs.push_back(message.text(field));
      node.output_fields.push_back(field.range);
      break;
    case 3:
      fields.once();
      node.name = message.text(field);
      break;
    case 4:
      fields.once();
      node.op_type = message.text(field);
      break;
    case 7:
      fields.once();
      node.domain = canonical_domain(message.text(field));
      break;
    case 8:
      fields.once();
      node.overload = message.text(field);
      break;
    case 9:
      parse_entry(message.open(field, "StringStringEntryProto"), node.metadata);
      break;
    default:
      break;
  }
}

void reserve_node(const Message& message, Node& node) {
  const FieldCounts counts = count_fields(message);
  message.input().charge((counts[1] + counts[2]) * kNodeNameCost + counts[5] * sizeof(Attribute));
  node.inputs.reserve(counts[1]);
  node.input_fields.reserve(counts[1]);
  node.outputs.reserve(counts[2]);
  node.output_fields.reserve(counts[2]);
  node.attributes.reserve(counts[5]);
}

}  // namespace

std::string canonical_domain(std::string domain) {
  return domain == "ai.onnx" ? std::string() : std::move(domain);
}

std::string name_in_messages(const Node& node) {
  std::string text = "node ";
  if (!node.name.empty()) {
    text += in_quotes(node.name) + " ";
  } else if (!node.outputs.empty()) {
    text += "that makes " + in_quotes(node.outputs.front()) + " ";
  }
  return text + "(" + in_quotes(node.op_type).substr(1, in_quotes(node.op_type).size() - 2) + ")";
}

Attribute parse_attribute(const Message& message, const Field& field, const Surroundings& around,
                          const std::string& node) {
  return AttributeParser(message, field, around, node).parse();
}

Node parse_node(const Message& message, const Field& field, const Surroundings& around) {
  Node node;
  node.field = field.range;
  reserve_node(message, node);
  for (Fields fields(message); const Field* each = fields.next();) {
    read_node_field(message, fields, *each, node);
  }
  const std::string name = name_in_messages(node);
  if (node.op_type.empty()) message.input().fail(name + " has no operator (op_type)");
  for (Fields fields(message); const Field* each = fields.next();) {
    if (each->number != 5) continue;
    node.attributes.push_back(
        parse_attribute(message.open(*each, "AttributeProto"), *each, around, name));
  }
  return node;
}

}  // namespace decent::onnx
