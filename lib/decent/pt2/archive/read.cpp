#include "decent/pt2/archive/read.h"

#include <algorithm>
#include <utility>

#include "decent/pt2/archive/parse.h"
#include "decent/pt2/archive/records.h"
#include "decent/pt2/json/document.h"

namespace decent::pt2 {
namespace {

constexpr std::int64_t kSchemaMajor = 8;

JsonDocument read_json(const Records& records, const std::string& record) {
  return JsonDocument(records.content(record), records.what_of(record));
}

// Must be read first, because in a file of another schema anything may be different.
SchemaVersion parse_schema_version(Json json) {
  const SchemaVersion version{json.at("major").integer(), json.at("minor").integer()};
  if (version.major == kSchemaMajor) return version;
  json.fail("is " + std::to_string(version.major) + "." + std::to_string(version.minor) +
            "; schema 8 can be read.\nFrom Python, export the model again with a PyTorch that "
            "writes it, such as 2.11");
}

RangeConstraint parse_range(Json json) {
  RangeConstraint range;
  if (const auto min = json.find("min_val")) range.min_value = min->integer();
  if (const auto max = json.find("max_val")) range.max_value = max->integer();
  return range;
}

NamedTuples parse_named_tuples(Json graph_module) {
  NamedTuples tuples;
  const auto json = graph_module.find("treespec_namedtuple_fields");
  if (!json) return tuples;
  for (const Json each : json->object()) tuples[each.key()] = parse_texts(each.at("field_names"));
  return tuples;
}

// The signature of the whole program comes first; the others belong to submodules.
Json root_signature(Json graph_module) {
  const Json calls = graph_module.at("module_call_graph");
  if (calls.size() == 0) calls.fail("is empty");
  return (*calls.list().begin()).at("signature");
}

void parse_trees(Json graph_module, const std::string& what, ExportedProgram& program) {
  const NamedTuples tuples = parse_named_tuples(graph_module);
  const Json signature = root_signature(graph_module);
  program.in_spec = parse_tree_spec(signature.at("in_spec").text(), tuples, what + ": in_spec");
  program.out_spec = parse_tree_spec(signature.at("out_spec").text(), tuples, what + ": out_spec");
  if (const auto names = signature.find("forward_arg_names")) {
    program.forward_arg_names = parse_texts(*names);
  }
}

void parse_versions(Json root, ExportedProgram& program) {
  for (const Json each : root.at("opset_version").object()) {
    program.opset_version[each.key()] = each.integer();
  }
  for (const Json each : root.at("range_constraints").object()) {
    program.range_constraints[each.key()] = parse_range(each);
  }
  if (const auto verifiers = root.find("verifiers")) program.verifiers = parse_texts(*verifiers);
  if (const auto version = root.find("torch_version")) program.torch_version = version->text();
}

void parse_program(Json root, const std::string& what, ExportedProgram& program) {
  program.schema_version = parse_schema_version(root.at("schema_version"));
  parse_versions(root, program);
  const Json graph_module = root.at("graph_module");
  const Json signature = graph_module.at("signature");
  program.graph = parse_graph(graph_module.at("graph"));
  program.input_specs = parse_list(signature.at("input_specs"), parse_input_spec);
  program.output_specs = parse_list(signature.at("output_specs"), parse_output_spec);
  parse_trees(graph_module, what, program);
}

ExportedProgram read_program(const std::string& name, const Records& records,
                             std::span<const std::byte> archive) {
  const auto payloads = [&](std::string_view folder, const char* kind) {
    const JsonDocument table =
        read_json(records, std::string(folder) + name + "_" + kind + "_config.json");
    return parse_payloads(table.root(), folder, records, archive);
  };
  ExportedProgram program;
  program.name = name;
  const std::string record = program_record(name);
  const std::string what = records.what_of(record);
  const JsonDocument json = read_json(records, record);
  parse_program(json.root(), what, program);
  program.weights = payloads(kWeightsFolder, "weights");
  program.constants = payloads(kConstantsFolder, "constants");
  check(program, what);
  return program;
}

}  // namespace

std::string Archive::what() const { return "model '" + path().string() + "'"; }

const ExportedProgram* Archive::find(std::string_view program) const {
  const auto found = std::ranges::find(programs, program, &ExportedProgram::name);
  return found == programs.end() ? nullptr : &*found;
}

Archive read_archive(const std::filesystem::path& path) {
  return read_archive(std::make_shared<const MappedFile>(path));
}

Archive read_archive(std::shared_ptr<const MappedFile> file) {
  Archive archive{.file = std::move(file), .programs = {}};
  const std::span<const std::byte> bytes = archive.file->bytes();
  const Records records(bytes, archive.what());
  for (const std::string& name : records.programs()) {
    archive.programs.push_back(read_program(name, records, bytes));
  }
  return archive;
}

}  // namespace decent::pt2
