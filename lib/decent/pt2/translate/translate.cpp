#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/pt2/analyse/shared_memory.h"
#include "decent/pt2/translate/program_method.h"
#include "decent/pt2/translate/translation.h"

namespace decent::pt2 {
namespace {

constexpr const char* kTrainMethod = "train_program";
constexpr const char* kEvalMethod = "eval_program";

void refuse_nodes(const std::vector<std::string>& refusals, const std::string& about) {
  constexpr std::size_t kMostNamed = 3;
  if (refusals.empty()) return;
  std::string text = about + " cannot be translated:";
  for (std::size_t i = 0; i < std::min(refusals.size(), kMostNamed); ++i)
    text += "\n" + refusals[i];
  if (refusals.size() > kMostNamed)
    text += "\nand " + std::to_string(refusals.size() - kMostNamed) + " more nodes";
  throw UserError(text);
}

ProgramMethod method_of(const ExportedProgram& program, const Analysis& analysis,
                        const MethodOptions& options) {
  ProgramMethod method = write_method(program, analysis, options);
  refuse_nodes(method.refusals, options.about);
  return method;
}

std::string definition(const std::string& name, const ProgramMethod& method) {
  return "def " + name + "(" + method.signature() + ") -> " + method.return_type + ":\n" +
         method.body;
}

[[noreturn]] void refuse_constant(const std::string& name, const std::string& about) {
  throw UserError(about + " writes into the tensor " + in_quotes(name) +
                  " in forward, which is neither a parameter nor a buffer and would be lost with "
                  "the run: register it as a buffer, by self.register_buffer(name, tensor) in "
                  "__init__, and export again");
}

// The names of buffers and parameters that the program writes. Throws UserError if training could
// not keep these writes.
std::set<std::string> written_by(const ExportedProgram& program, const Analysis& analysis,
                                 const std::string& about) {
  std::vector<OwnTensor> tensors = find_statistics(program, analysis.schemas, analysis.modes);
  for (const auto& [node, writes] : analysis.writes) {
    for (const BufferWrite& each : writes.tensors) tensors.push_back({each.buffer, each.kind});
  }
  std::set<std::string> names;
  for (const OwnTensor& each : tensors) {
    if (each.kind == OwnTensor::Kind::constant) refuse_constant(each.name, about);
    names.insert(each.name);
  }
  refuse_shared_memory(program, names, about);
  return names;
}

// ---- one program for both modes

Translation translate_one(const ExportedProgram& program, const OperatorSchemas& schemas,
                          const std::string& about) {
  Analysis analysis{schemas, survey_modes(program), find_buffer_writes(program, schemas),
                    find_written_later(program, schemas)};
  const MethodOptions options{.about = about, .written = written_by(program, analysis, about)};
  ProgramMethod method = method_of(program, analysis, options);
  Translation translation;
  translation.module = {.methods = definition("forward", method),
                        .parameters = std::move(method.parameters),
                        .buffers = std::move(method.buffers),
                        .constants = std::move(method.constants)};
  translation.arguments = std::move(method.inputs);
  translation.left_out = std::move(method.left_out);
  translation.random = find_random(program, analysis.modes, schemas);
  translation.modes = std::move(analysis.modes);
  translation.writes = std::move(analysis.writes);
  return translation;
}

// ---- one program for each mode

bool hold_the_same(const Payload& a, const Payload& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides &&
         a.storage_offset == b.storage_offset && a.storage.size() == b.storage.size() &&
         (a.storage.empty() ||
          std::memcmp(a.storage.data(), b.storage.data(), a.storage.size()) == 0);
}

// Adds the tensors that only `other` has. A tensor in both must be the same.
void join_tensors(const std::vector<NamedPayload>& other, std::vector<NamedPayload>& tensors,
                  const std::string& about) {
  std::map<std::string, const Payload*> own;
  for (const NamedPayload& each : tensors) own.emplace(each.name, each.payload);
  for (const NamedPayload& each : other) {
    const auto found = own.find(each.name);
    if (found == own.end()) {
      tensors.push_back(each);
    } else if (!hold_the_same(*found->second, *each.payload)) {
      throw UserError(about + " holds two values of '" + on_one_line(each.name) +
                      "', one in each of its programs: export 'train' and 'eval' from the same "
                      "module, one after the other");
    }
  }
}

void check_signatures(const ProgramMethod& train, const ProgramMethod& eval,
                      const std::string& about) {
  if (train.types == eval.types && train.return_type == eval.return_type) return;
  throw UserError(about +
                  " has programs 'train' and 'eval' that take or return different things: (" +
                  train.signature() + ") -> " + train.return_type + " and (" + eval.signature() +
                  ") -> " + eval.return_type);
}

std::string choice(const ProgramMethod& train) {
  std::string arguments;
  for (const auto& [name, argument] : train.inputs)
    arguments += (arguments.empty() ? "" : ", ") + argument;
  return "def forward(" + train.signature() + ") -> " + train.return_type +
         ":\n    if self.training:\n        return self." + kTrainMethod + "(" + arguments +
         ")\n    return self." + kEvalMethod + "(" + arguments + ")\n";
}

Translation translate_two(const Programs& programs, const OperatorSchemas& schemas,
                          const std::string& about) {
  Analysis of_train{schemas, survey_fixed_modes(*programs.train),
                    find_buffer_writes(*programs.train, schemas),
                    find_written_later(*programs.train, schemas), /*is_for_both_modes=*/false};
  const Analysis of_eval{schemas, survey_fixed_modes(*programs.eval),
                         find_buffer_writes(*programs.eval, schemas),
                         find_written_later(*programs.eval, schemas), /*is_for_both_modes=*/false};
  MethodOptions options{.about = about, .written = written_by(*programs.train, of_train, about)};
  options.written.merge(written_by(*programs.eval, of_eval, about));
  options.constants_prefix = "train_";
  ProgramMethod train = method_of(*programs.train, of_train, options);
  options.constants_prefix = "eval_";
  ProgramMethod eval = method_of(*programs.eval, of_eval, options);
  check_signatures(train, eval, about);

  Translation translation;
  ModuleSource& module = translation.module;
  module.methods = definition(kTrainMethod, train) + definition(kEvalMethod, eval) + choice(train);
  module.parameters = std::move(train.parameters);
  module.buffers = std::move(train.buffers);
  module.constants = std::move(train.constants);
  translation.stored = eval.parameters;
  std::copy(eval.buffers.begin(), eval.buffers.end(), std::back_inserter(translation.stored));
  join_tensors(eval.parameters, module.parameters, about);
  join_tensors(eval.buffers, module.buffers, about);
  module.constants.merge(eval.constants);
  translation.arguments = std::move(train.inputs);
  translation.left_out = std::move(train.left_out);
  translation.modes = std::move(of_train.modes);
  translation.writes = std::move(of_train.writes);
  return translation;
}

}  // namespace

Translation translate(const Programs& programs, const OperatorSchemas& schemas,
                      const std::string& about) {
  Translation translation = programs.are_two() ? translate_two(programs, schemas, about)
                                               : translate_one(*programs.train, schemas, about);
  const ModuleSource& module = translation.module;
  for (const auto* tensors : {&module.parameters, &module.buffers})
    std::copy(tensors->begin(), tensors->end(), std::back_inserter(translation.stored));
  return translation;
}

}  // namespace decent::pt2
