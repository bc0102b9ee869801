#pragma once
// Converts the messages of onnx.proto to ir.h, one function per message. These functions check each
// message by itself; check_model() checks how messages fit together. All throw UserError.

#include <map>
#include <string>
#include <utility>

#include "decent/onnx/format/external.h"
#include "decent/onnx/format/ir.h"
#include "decent/onnx/format/wire.h"

namespace decent::onnx {

/// The surroundings of a message.
struct Surroundings {
  ExternalData* external = nullptr;  // null if there is no model's folder
  bool in_function = false;
};

/// `owner` is the tensor's name in messages if it has none: "attribute 'value' of node 'x'".
Tensor parse_tensor(const Message& message, const Surroundings& around, const std::string& owner);

Node parse_node(const Message& message, const Field& field, const Surroundings& around);

/// An attribute of a node or function; `node` is its name in messages ("node 'x' (Add)", "function
/// 'f'").
Attribute parse_attribute(const Message& message, const Field& field, const Surroundings& around,
                          const std::string& node);

Graph parse_graph(const Message& message, const Field& field, const Surroundings& around);

Function parse_function(const Message& message, const Surroundings& around);

ValueInfo parse_value_info(const Message& message);

/// Appends a StringStringEntryProto.
void parse_entry(const Message& message, std::map<std::string, std::string>& to);

/// Appends an OperatorSetIdProto. Throws UserError if its domain already has another version.
void parse_opset(const Message& message, std::map<std::string, std::int64_t>& to);

/// "" for the standard domain, which has two names.
std::string canonical_domain(std::string domain);

/// The node's name in messages: "node 'x' (Add)"; with its first output if it has no name.
std::string name_in_messages(const Node& node);

/// Throws UserError if the IR version or an operator set cannot be read, if a value is made twice,
/// used before it is made or never made, if initializers or attributes of a node share a name, or
/// if a function is defined twice, calls itself, or has more than kMaxNodes nodes when calls are
/// expanded.
void check_model(Input& input, const Model& model);

}  // namespace decent::onnx
