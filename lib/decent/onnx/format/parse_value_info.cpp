// ValueInfoProto with TypeProto, and the small messages that several others hold.

#include <utility>

#include "decent/core/text.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/parse.h"

namespace decent::onnx {
namespace {

constexpr std::uint64_t kMapNodeCost = 64;

Dimension parse_dimension(const Message& message) {
  Dimension dimension;
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number == 1) {
      fields.once();
      const std::int64_t value = message.integer(*field);
      if (value >= 0) dimension.value = value;
    } else if (field->number == 2) {
      fields.once();
      dimension.parameter = message.text(*field);
    }
  }
  return dimension;
}

std::vector<Dimension> parse_shape(const Message& message) {
  std::vector<Dimension> shape;
  const std::uint64_t count = count_fields(message)[1];
  message.input().charge(count * sizeof(Dimension));
  shape.reserve(count);
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number != 1) continue;
    shape.push_back(parse_dimension(message.open(*field, "TensorShapeProto.Dimension")));
  }
  return shape;
}

// What a TypeProto says about a value; `name` is the value's name.
struct ParsedType {
  ValueInfo::Kind kind = ValueInfo::Kind::tensor;
  ElementType element = ElementType::undefined;
  std::optional<std::vector<Dimension>> shape = {};
};

ParsedType parse_tensor_type(const Message& message, const std::string& name) {
  ParsedType type;
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number == 1) {
      fields.once();
      const std::int64_t number = message.integer(*field);
      type.element = element_type(number);
      if (type.element == ElementType::undefined && number != 0) {
        message.input().fail("value " + in_quotes(name) + " is of " + refused_type_text(number));
      }
    } else if (field->number == 2) {
      fields.once();
      type.shape = parse_shape(message.open(*field, "TensorShapeProto"));
    }
  }
  return type;
}

ParsedType parse_type(const Message& message, const std::string& name);

// A sequence of tensors; a sequence of anything else is Kind::other.
ParsedType parse_sequence_type(const Message& message, const std::string& name) {
  ParsedType type;
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number != 1) continue;
    fields.once();
    type = parse_type(message.open(*field, "TypeProto"), name);
  }
  if (type.kind != ValueInfo::Kind::tensor) return {.kind = ValueInfo::Kind::other};
  type.kind = ValueInfo::Kind::sequence;
  return type;
}

ParsedType parse_type(const Message& message, const std::string& name) {
  ParsedType type;
  bool known = false;
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number == 6) continue;  // denotation
    if (std::exchange(known, true)) {
      message.input().fail("value " + in_quotes(name) + " has two types");
    }
    if (field->number == 1) {
      type = parse_tensor_type(message.open(*field, "TypeProto.Tensor"), name);
    } else if (field->number == 4) {
      type = parse_sequence_type(message.open(*field, "TypeProto.Sequence"), name);
    } else {
      type.kind = ValueInfo::Kind::other;
    }
  }
  return type;
}

}  // namespace

ValueInfo parse_value_info(const Message& message) {
  ValueInfo info;
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number == 1) {
      fields.once();
      info.name = message.text(*field);
    } else if (field->number == 4) {
      parse_entry(message.open(*field, "StringStringEntryProto"), info.metadata);
    }
  }
  if (info.name.empty()) {
    message.input().fail("a value that the graph declares (byte " +
                         std::to_string(message.content().begin) + ") has no name");
  }
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number != 2) continue;
    fields.once();
    ParsedType type = parse_type(message.open(*field, "TypeProto"), info.name);
    info.kind = type.kind;
    info.type = type.element;
    info.shape = std::move(type.shape);
  }
  return info;
}

void parse_entry(const Message& message, std::map<std::string, std::string>& to) {
  message.input().charge(2 * sizeof(std::string) + kMapNodeCost);
  std::string key;
  std::string value;
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number != 1 && field->number != 2) continue;
    fields.once();
    (field->number == 1 ? key : value) = message.text(*field);
  }
  to.insert_or_assign(std::move(key), std::move(value));
}

void parse_opset(const Message& message, std::map<std::string, std::int64_t>& to) {
  message.input().charge(sizeof(std::string) + kMapNodeCost);
  std::string domain;
  std::int64_t version = 0;
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number != 1 && field->number != 2) continue;
    fields.once();
    if (field->number == 1) {
      domain = canonical_domain(message.text(*field));
    } else {
      version = message.integer(*field);
    }
  }
  const auto [known, added] = to.emplace(domain, version);
  if (added || known->second == version) return;
  message.input().fail("imports two versions of the operators of " +
                       in_quotes(domain.empty() ? "ai.onnx" : domain) + ", " +
                       std::to_string(known->second) + " and " + std::to_string(version));
}

}  // namespace decent::onnx
