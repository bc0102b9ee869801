#pragma once
// Archives of torch.export.save written by hand, for tests.

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/zip_bytes.h"
#include "decent/core/zip.h"

namespace decent::pt2::testing {

inline std::uint32_t checksum_of(std::string_view content) {
  return zip_checksum(std::as_bytes(std::span(content.data(), content.size())));
}

/// TensorMeta of a dense tensor of the schema's element type.
inline std::string meta(const std::string& sizes, const std::string& strides, int dtype = 7,
                        int offset = 0) {
  return R"({"dtype": )" + std::to_string(dtype) + R"(, "sizes": [)" + sizes +
         R"(], "requires_grad": true, "device": {"type": "cpu", "index": null}, "strides": [)" +
         strides + R"(], "storage_offset": {"as_int": )" + std::to_string(offset) +
         R"(}, "layout": 7})";
}

/// One size or stride, or several.
inline std::string numbers(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) {
    text += (text.empty() ? "" : ", ") + ("{\"as_int\": " + std::to_string(value) + "}");
  }
  return text;
}

inline std::string tensor_values() {
  const std::string symbol =
      R"json({"as_expr": {"expr_str": "Symbol('s0')", "hint": {"as_int": 4}}}, )json";
  return R"({"p_w": )" + meta(numbers({2, 3}), numbers({3, 1})) + R"(, "b_b": )" +
         meta(numbers({2}), numbers({1})) + R"(, "c_c": )" + meta("", "") + R"(, "x": )" +
         meta(symbol + numbers({3}), numbers({3, 1})) + R"(, "linear": )" + meta("", "") +
         R"(, "add": )" + meta("", "") + "}";
}

inline const std::string kNodes = R"json([
   {"target": "torch.ops.aten.linear.default", "name": "linear", "metadata": {"torch_fn": "f"},
    "inputs": [{"name": "input", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
               {"name": "weight", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1},
               {"name": "bias", "arg": {"as_tensor": {"name": "b_b"}}, "kind": 2}],
    "outputs": [{"as_tensor": {"name": "linear"}}], "is_hop_single_tensor_return": null},
   {"target": "torch.ops.aten.add.Tensor", "name": "add", "metadata": {},
    "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "linear"}}, "kind": 1},
               {"name": "other", "arg": {"as_tensor": {"name": "c_c"}}, "kind": 1}],
    "outputs": [{"as_tensor": {"name": "add"}}]}])json";

inline std::string graph() {
  return R"json({
  "inputs": [{"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "b_b"}},
             {"as_tensor": {"name": "c_c"}}, {"as_tensor": {"name": "x"}}],
  "outputs": [{"as_tensor": {"name": "add"}}],
  "nodes": )json" +
         kNodes + R"json(,
  "sym_int_values": {}, "sym_bool_values": {}, "sym_float_values": {}, "custom_obj_values": {},
  "is_single_tensor_return": false, "tensor_values": )json" +
         tensor_values() + "}";
}

inline const std::string kSignature = R"json({
  "input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
                  {"buffer": {"arg": {"name": "b_b"}, "buffer_name": "b", "persistent": true}},
                  {"tensor_constant": {"arg": {"name": "c_c"}, "tensor_constant_name": "c"}},
                  {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
  "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "add"}}}}]})json";

// JSON in a text: a node of a TreeSpec.
inline std::string tree(const std::string& type, const std::string& context,
                        const std::string& children) {
  return R"({\"type\": )" + type + R"(, \"context\": )" + context + R"(, \"children_spec\": [)" +
         children + "]}";
}

inline std::string in_spec() {
  const std::string tuple = R"(\"builtins.tuple\")";
  const std::string args = tree(tuple, R"(\"null\")", tree("null", "null", ""));
  return "[1, " +
         tree(tuple, R"(\"null\")", args + ", " + tree(R"(\"builtins.dict\")", R"(\"[]\")", "")) +
         "]";
}

/// The program y = linear(x, w, b) + c of x, which has a symbol for its first size; "w" is a
/// parameter, "b" a buffer that lies in the same record, behind it.
inline std::string program_text() {
  return R"({"graph_module": {"graph": )" + graph() + R"(, "signature": )" + kSignature +
         R"(, "module_call_graph": [{"fqn": "", "signature": {"inputs": [],
         "outputs": [], "in_spec": ")" +
         in_spec() + R"(", "out_spec": "[1, )" + tree("null", "null", "") +
         R"(]", "forward_arg_names": ["x"]}}], "metadata": {}, "treespec_namedtuple_fields": {}},
         "opset_version": {"aten": 10}, "range_constraints": {"s0": {"min_val": 0, "max_val": null}},
         "schema_version": {"major": 8, "minor": 17}, "verifiers": ["TRAINING"],
         "torch_version": "2.11.0", "guards_code": []})";
}

inline std::string payload(const std::string& record, const std::string& tensor_meta) {
  return R"({"path_name": ")" + record +
         R"(", "is_param": true, "use_pickle": false, "tensor_meta": )" + tensor_meta + "}";
}

/// The records of an archive by their names in its folder.
using RecordTexts = std::vector<std::pair<std::string, std::string>>;

inline RecordTexts small_records() {
  const std::string weights =
      R"({"config": {"w": )" + payload("weight_0", meta(numbers({2, 3}), numbers({3, 1}))) +
      R"(, "b": )" + payload("weight_0", meta(numbers({2}), numbers({1}), 7, 6)) + "}}";
  const std::string constants = R"({"config": {"c": )" + payload("tensor_0", meta("", "")) + "}}";
  return {{"data/weights/weight_0", std::string(32, '\1')},
          {"data/weights/model_weights_config.json", weights},
          {"data/constants/tensor_0", std::string(4, '\2')},
          {"data/constants/model_constants_config.json", constants},
          {"models/model.json", program_text()},
          {"archive_format", "pt2"},
          {"archive_version", "0"},
          {"byteorder", "little"}};
}

/// The same, with the one place of `record` where `from` stands changed.
inline RecordTexts changed(const std::string& record, const std::string& from,
                           const std::string& to, RecordTexts records = small_records()) {
  for (auto& [name, content] : records) {
    if (name != record) continue;
    const std::size_t place = content.find(from);
    if (place == std::string::npos || content.find(from, place + 1) != std::string::npos) {
      throw std::logic_error("not once in the record: " + from);
    }
    content.replace(place, from.size(), to);
    return records;
  }
  throw std::logic_error("no such record: " + record);
}
inline RecordTexts changed_program(const std::string& from, const std::string& to) {
  return changed("models/model.json", from, to);
}

inline std::vector<decent::testing::ZipPart> zip_parts(const RecordTexts& records) {
  std::vector<decent::testing::ZipPart> parts;
  for (const auto& [name, content] : records) {
    parts.push_back({.name = "m/" + name, .content = content, .checksum = checksum_of(content)});
  }
  return parts;
}

inline std::string archive_bytes(const RecordTexts& records) {
  return decent::testing::zip_bytes(zip_parts(records));
}

/// Of tests/pt2/fixtures.
inline std::filesystem::path fixture(const std::string& name) {
  const char* root = std::getenv("DECENT_SOURCE_DIR");
  if (root == nullptr) throw std::runtime_error("DECENT_SOURCE_DIR is not set");
  return std::filesystem::path(root) / "tests" / "pt2" / "fixtures" / name;
}

}  // namespace decent::pt2::testing
