#include "decent/model/pt2/export.h"

#include <cstring>
#include <map>
#include <string>

#include "decent/pt2/write/write.h"

namespace decent {
namespace {

// Where a tensor of the archive is now.
std::map<const pt2::Payload*, at::Tensor> tensors_of(const Pt2Import& import, const Model& model) {
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : model.state()) by_name.emplace(name, tensor);
  std::map<const pt2::Payload*, at::Tensor> tensors;
  for (const pt2::NamedPayload& each : import.translation.stored)
    tensors.emplace(each.payload, by_name.at(each.name));
  return tensors;
}

}  // namespace

void export_pt2(const Pt2Import& import, const Model& model, const std::filesystem::path& path,
                const FileExtras& extras) {
  const auto tensors = tensors_of(import, model);
  const auto new_elements = [&](const pt2::ExportedProgram& /*program*/,
                                const std::string& /*name*/, const pt2::Payload& payload,
                                std::span<std::byte> elements) {
    const auto found = tensors.find(&payload);
    if (found == tensors.end()) return false;
    const at::Tensor now = found->second.detach().cpu().contiguous();
    if (!elements.empty()) std::memcpy(elements.data(), now.const_data_ptr(), elements.size());
    return true;
  };
  const pt2::ExtraFile data{kDataInFile, extras.data};
  pt2::write_archive(import.archive, path, new_elements, extras.data.empty() ? nullptr : &data);
}

}  // namespace decent
