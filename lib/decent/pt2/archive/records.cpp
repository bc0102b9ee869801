#include "decent/pt2/archive/records.h"

#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

constexpr std::string_view kJson = ".json";

std::string export_again() {
  return ".\nFrom Python, export the model with PyTorch 2.11 or later:\n"
         "    torch.export.save(torch.export.export(model.train(), example_inputs), 'model.pt2')";
}

// What kind of archive it is, if it has this record.
struct RecordLayout {
  std::string_view record;  // ends with "/" if it is a folder
  std::string_view text;
};
constexpr RecordLayout kOtherLayouts[] = {
    {"serialized_exported_program.json", "is in a layout of torch.export.save that is too old"},
    {"data.pkl", "is a file of torch.save or torch.jit.save, not of torch.export.save"},
    {"data/aotinductor/",
     "holds what AOTInductor compiled, which cannot be trained and would not learn new weights"},
    {"data/executorch/", "holds a program for ExecuTorch, which cannot be trained"},
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view without_line_end(std::string_view text) {
  return text.ends_with('\n') ? text.substr(0, text.size() - 1) : text;
}

}  // namespace

Records::Records(std::span<const std::byte> bytes, std::string what) : what_(std::move(what)) {
  const std::vector<ZipEntry> entries = read_zip(bytes, what_);
  const std::string_view first = entries.empty() ? "" : entries.front().name;
  folder_ = first.substr(0, first.find('/') + 1);
  for (const ZipEntry& entry : entries) {
    if (entry.name.starts_with(folder_)) entries_[entry.name.substr(folder_.size())] = entry;
  }
  check_format();
  check_programs();
}

std::string Records::what_of(std::string_view record) const {
  return what_ + ": record " + in_quotes(record);
}

const ZipEntry* Records::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

const ZipEntry& Records::at(std::string_view name) const {
  const ZipEntry* entry = find(name);
  if (entry == nullptr) {
    throw UserError(what_ + ": damaged: it has no record " + in_quotes(name));
  }
  if (!entry->deflated) return *entry;
  throw UserError(what_ + ": record " + in_quotes(name) +
                  " is compressed, as torch.export.save never writes it.\nFrom Python, write the "
                  "file anew: torch.export.save(torch.export.load(..), ..)");
}

std::string_view Records::content(std::string_view name) const {
  const ZipEntry& entry = at(name);
  check_stored(entry, what_of(name));
  return text_of(entry.data);
}

bool Records::has_folder(std::string_view folder) const {
  const auto found = entries_.lower_bound(folder);
  return found != entries_.end() && found->first.starts_with(folder);
}

std::vector<std::string> Records::programs() const {
  std::vector<std::string> names;
  for (auto each = entries_.lower_bound(kModelsFolder);
       each != entries_.end() && each->first.starts_with(kModelsFolder); ++each) {
    std::string_view name = each->first.substr(kModelsFolder.size());
    if (name.ends_with(kJson)) names.emplace_back(name.substr(0, name.size() - kJson.size()));
  }
  return names;
}

void Records::check_format() const {
  for (const auto& [record, text] : kOtherLayouts) {
    if (record.ends_with('/') ? has_folder(record) : find(record) != nullptr) {
      throw UserError(what_ + " " + std::string(text) + export_again());
    }
  }
  if (find("archive_format") == nullptr || content("archive_format") != "pt2") {
    throw UserError(what_ + " is a zip archive, but not one of torch.export.save" + export_again());
  }
  if (find("byteorder") != nullptr && without_line_end(content("byteorder")) != "little") {
    throw UserError(what_ + " was written on a big-endian machine, and cannot be read on this one");
  }
  const std::string_view version =
      find("archive_version") == nullptr ? "0" : without_line_end(content("archive_version"));
  if (version != "0") {
    throw UserError(what_ + " is an archive of version " + in_quotes(version) +
                    "; version 0 can be read" + export_again());
  }
}

void Records::check_programs() const {
  if (programs().empty()) throw UserError(what_ + " holds no exported program" + export_again());
  for (const std::string& name : programs()) {
    for (const std::string_view folder : {kWeightsFolder, kConstantsFolder}) {
      if (find(std::string(folder) + name + ".pt") == nullptr) continue;
      throw UserError(what_ + " is in a layout of torch.export.save that is too old" +
                      export_again());
    }
  }
}

}  // namespace decent::pt2
