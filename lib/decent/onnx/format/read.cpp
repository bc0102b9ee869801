#include "decent/onnx/format/read.h"

#include <memory>
#include <utility>

#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/wire.h"

namespace decent::onnx {
namespace {

constexpr std::uint64_t kFunctionCost = sizeof(Function) + 160;  // and a place in the checks' map

void reserve_model(const Message& message, Model& model) {
  const FieldCounts counts = count_fields(message);
  message.input().charge(counts[25] * kFunctionCost);
  model.functions.reserve(counts[25]);
}

void parse_model_field(const Message& message, Fields& fields, const Field& field,
                       const Surroundings& around, Model& model) {
  switch (field.number) {
    case 1:
      fields.once();
      model.ir_version = message.integer(field);
      break;
    case 2:
      fields.once();
      model.producer_name = message.text(field);
      break;
    case 3:
      fields.once();
      model.producer_version = message.text(field);
      break;
    case 7:
      fields.once();
      model.graph = parse_graph(message.open(field, "GraphProto"), field, around);
      break;
    case 8:
      parse_opset(message.open(field, "OperatorSetIdProto"), model.opsets);
      break;
    case 14:
      parse_entry(message.open(field, "StringStringEntryProto"), model.metadata);
      break;
    case 25:
      model.functions.push_back(parse_function(message.open(field, "FunctionProto"), around));
      break;
    default:  // training_info, configuration, doc_string: kept in the file, not used
      break;
  }
}

}  // namespace

Model read_model(const std::filesystem::path& path) {
  return read_model(std::make_shared<const MappedFile>(path));
}

Model read_model(std::shared_ptr<const MappedFile> file) {
  const std::filesystem::path& path = file->path();
  Input input(file->bytes(), path);
  if (input.bytes.empty()) input.fail("the file is empty");
  if (input.bytes.size() > kMaxFileBytes) {
    input.fail("has " + std::to_string(input.bytes.size()) +
               " bytes; over 2 GiB, the weights must be external data (save_as_external_data)");
  }
  ExternalData external(input, path.parent_path());
  const Surroundings around{.external = &external};
  const Message message(input, {0, input.bytes.size()}, "ModelProto");
  Model model;
  model.path = path;
  reserve_model(message, model);
  for (Fields fields(message); const Field* field = fields.next();) {
    parse_model_field(message, fields, *field, around, model);
  }
  external.check_overlaps();
  check_model(input, model);
  model.files = external.files();
  model.files.insert(model.files.begin(), std::move(file));
  return model;
}

}  // namespace decent::onnx
