#include "decent/model/pt2/export.h"

#include <cstring>
#include <map>
#include <string>

#include "decent/pt2/archive/records.h"
#include "decent/pt2/report/report.h"
#include "decent/pt2/write/inference_form.h"
#include "decent/pt2/write/write.h"

namespace decent {
namespace {

// The present tensor for each tensor of the archive.
std::map<const pt2::Payload*, at::Tensor> tensors_of(const Pt2Import& import, const Model& model) {
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : model.state()) by_name.emplace(name, tensor);
  std::map<const pt2::Payload*, at::Tensor> tensors;
  for (const pt2::NamedPayload& each : import.translation.stored)
    tensors.emplace(each.payload, by_name.at(each.name));
  return tensors;
}

// Adds the program for inference if the archive has one program for both modes. An archive with a
// program for each mode already has it.
void add_inference_form(const Pt2Import& import, std::map<std::string, std::string>& records) {
  if (import.programs.are_two()) return;
  const pt2::ExportedProgram& program = *import.programs.train;
  const std::string record = pt2::program_record(program.name);
  const pt2::Records all(import.archive.file->bytes(), import.archive.what());
  auto form = pt2::inference_form(program, import.translation.modes, import.translation.writes,
                                  all.content(record));
  if (!form) return;
  records[record] = std::move(*form);
  const std::string lost = pt2::lost_for_inference(import.translation);
  if (!lost.empty()) records[record_of_extra(kLostInFile)] = lost;
}

}  // namespace

void export_pt2(const Pt2Import& import, const Model& model, const std::filesystem::path& path,
                const FileExtras& extras) {
  const auto tensors = tensors_of(import, model);
  pt2::Changes changes;
  changes.elements = [&](const pt2::ExportedProgram& /*program*/, const std::string& /*name*/,
                         const pt2::Payload& payload, std::span<std::byte> elements) {
    const auto found = tensors.find(&payload);
    if (found == tensors.end()) return false;
    const at::Tensor now = found->second.detach().cpu().contiguous();
    if (!elements.empty()) std::memcpy(elements.data(), now.const_data_ptr(), elements.size());
    return true;
  };
  if (!extras.data.empty()) changes.records[record_of_extra(kDataInFile)] = extras.data;
  if (!extras.for_training) add_inference_form(import, changes.records);
  pt2::write_archive(import.archive, path, changes);
}

}  // namespace decent
