// Any bytes are an archive or a UserError, nothing else; what an archive says of its tensors is
// true, it is translated or refused, and it is written back as one.
//
// Checksums would stop nearly every change of a whole archive, so most inputs are one part of an
// archive that is valid otherwise: their first byte tells which.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "../unit/pt2/archive_bytes.h"
#include "../unit/pt2/programs.h"
#include "decent/core/error.h"
#include "decent/pt2/archive/read.h"
#include "decent/pt2/archive/records.h"
#include "decent/pt2/archive/sample_inputs.h"
#include "decent/pt2/report/report.h"
#include "decent/pt2/translate/translation.h"
#include "decent/pt2/write/inference_form.h"
#include "decent/pt2/write/write.h"
#include "input_files.h"

namespace {

namespace pt2 = decent::pt2;
using pt2::testing::RecordTexts;

// As it stands in a text of JSON.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string archive_around(char part, const std::string& content) {
  RecordTexts records = pt2::testing::small_records();
  const auto replace = [&](const std::string& record) {
    for (auto& [name, text] : records) {
      if (name == record) text = content;
    }
  };
  switch (part) {
    case 'm':
      replace("models/model.json");
      break;
    case 'w':
      replace("data/weights/model_weights_config.json");
      break;
    case 'c':
      replace("data/constants/model_constants_config.json");
      break;
    case 'n':
      records = pt2::testing::changed_program(pt2::testing::kNodes, content);
      break;
    case 's':
      records = pt2::testing::changed_program(pt2::testing::kSignature, content);
      break;
    case 'i':
      records = pt2::testing::changed_program(pt2::testing::in_spec(), escaped(content));
      break;
    default: {
      const std::string file =
          decent::testing::zip_bytes({{.name = "a/data.pkl", .content = content},
                                      {.name = "a/data/0", .content = std::string(24, '\0')}});
      records.emplace_back("data/sample_inputs/model.pt", file);
    }
  }
  return pt2::testing::archive_bytes(records);
}

std::optional<pt2::Archive> read(std::string_view bytes) {
  try {
    return pt2::read_archive(decent::fuzzing::file_of(bytes, "input.pt2"));
  } catch (const decent::UserError&) {
    return std::nullopt;
  }
}

// Its last element lies in its record, and its record in the file.
void check_payload(const pt2::Payload& payload, std::span<const std::byte> file) {
  if (payload.offset > file.size() || payload.storage.size() > file.size() - payload.offset) {
    __builtin_trap();
  }
  if (payload.storage.data() != file.data() + payload.offset) __builtin_trap();
  if (payload.strides.size() != payload.sizes.size()) __builtin_trap();
  if (payload.count() == 0) return;
  auto last = static_cast<unsigned __int128>(payload.storage_offset);
  for (std::size_t i = 0; i < payload.sizes.size(); ++i) {
    last += static_cast<unsigned __int128>(payload.sizes[i] - 1) *
            static_cast<unsigned __int128>(payload.strides[i]);
  }
  if ((last + 1) * pt2::size_of(payload.dtype) > payload.storage.size()) __builtin_trap();
}

void read_samples(const pt2::Archive& archive) {
  for (const pt2::ExportedProgram& program : archive.programs) {
    try {
      const auto values = pt2::read_sample_inputs(archive, program);
      if (values && values->size() != program.in_spec.leaves()) __builtin_trap();
    } catch (const decent::UserError&) {
    }
  }
}

bool keep(const pt2::ExportedProgram&, const std::string&, const pt2::Payload&,
          std::span<std::byte>) {
  return false;
}

// Of keys that stand twice a reader takes the first, a writer the last: that may be refused.
void write_for_inference(const pt2::Archive& archive, const pt2::ExportedProgram& program,
                         const pt2::Translation& translation) {
  static const decent::fuzzing::Folder folder;
  const std::string record = pt2::program_record(program.name);
  const pt2::Records records(archive.file->bytes(), archive.what());
  const auto form =
      pt2::inference_form(program, translation.modes, translation.writes, records.content(record));
  if (!form) return;
  pt2::write_archive(archive, folder.path() / "inference.pt2", {keep, {{record, *form}}});
  pt2::read_archive(folder.path() / "inference.pt2");
}

void translate(const pt2::Archive& archive) {
  static const pt2::testing::Schemas schemas;
  for (const pt2::ExportedProgram& program : archive.programs) {
    try {
      const pt2::Programs programs{&program, nullptr};
      const pt2::Translation translation = pt2::translate(programs, schemas, archive.what());
      for (const auto detail : {pt2::Detail::brief, pt2::Detail::full})
        pt2::import_report({archive, programs, translation}, detail);
      write_for_inference(archive, program, translation);
    } catch (const decent::UserError&) {
    }
  }
}

bool turn_round(const pt2::ExportedProgram&, const std::string&, const pt2::Payload&,
                std::span<std::byte> elements) {
  for (std::byte& byte : elements) byte = ~byte;
  return true;
}

void write_back(const pt2::Archive& archive) {
  static const decent::fuzzing::Folder folder;
  const std::filesystem::path path = folder.path() / "output.pt2";
  try {
    pt2::write_archive(archive, path, {keep});
  } catch (const decent::UserError&) {
    return;  // a checksum is not where it should be
  }
  const decent::MappedFile same(path);
  if (!std::ranges::equal(same.bytes(), archive.file->bytes())) __builtin_trap();
  for (const char* content : {"text", "another"}) {  // still an archive, and again
    pt2::write_archive(archive, path, {turn_round, {{"extra/new.txt", content}}});
    const pt2::Archive written = pt2::read_archive(path);
    const pt2::Records records(written.file->bytes(), written.what());
    if (records.content("extra/new.txt") != content) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const bool is_whole = bytes.starts_with("PK");
  const auto archive = read(is_whole ? bytes : archive_around(bytes[0], bytes.substr(1)));
  if (!archive) return 0;
  for (const pt2::ExportedProgram& program : archive->programs) {
    for (const auto* table : {&program.weights, &program.constants}) {
      for (const auto& [name, payload] : *table) check_payload(payload, archive->file->bytes());
    }
  }
  read_samples(*archive);
  translate(*archive);
  write_back(*archive);
  return 0;
}
