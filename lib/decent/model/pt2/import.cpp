#include "decent/model/pt2/import.h"

#include <string>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/quote.h"
#include "decent/core/text.h"
#include "decent/model/pt2/module.h"
#include "decent/model/pt2/schemas.h"
#include "decent/model/reason.h"

namespace decent {
namespace {

// The one program of the archive, whatever its name, or its programs for each mode.
pt2::Programs programs_of(const pt2::Archive& archive) {
  const pt2::ExportedProgram* train = archive.find("train");
  const pt2::ExportedProgram* eval = archive.find("eval");
  if (archive.programs.size() == 1) return {&archive.programs.front(), nullptr};
  if (archive.programs.size() == 2 && train != nullptr && eval != nullptr) return {train, eval};
  std::vector<std::string> names;
  for (const pt2::ExportedProgram& each : archive.programs) names.push_back(in_quotes(each.name));
  throw UserError(archive.what() + " holds several programs (" + some_of(names, 5) +
                  "): one alone, or two called 'train' and 'eval' can be trained");
}

}  // namespace

Pt2Import import_pt2(const std::filesystem::path& path) {
  Pt2Import result;
  result.archive = pt2::read_archive(path);
  result.programs = programs_of(result.archive);
  const std::string about = result.archive.what();
  result.translation = pt2::translate(result.programs, RegisteredSchemas(), about);
  try {
    result.module = make_module(result.translation.module);
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    throw UserError(about +
                    " cannot be imported: what its program translates to does not compile: " +
                    reason_of(error));
  }
  return result;
}

}  // namespace decent
