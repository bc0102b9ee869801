// --report: pages that show runs.

#include <algorithm>
#include <cstdio>
#include <system_error>

#include "commands.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/report/page/page.h"
#include "decent/train/output_files.h"
#include "page_server.h"

namespace decent {
namespace {

namespace fs = std::filesystem;

bool is_one_of(const std::vector<RunFolder>& runs, const fs::path& folder) {
  return std::any_of(runs.begin(), runs.end(), [&](const RunFolder& run) {
    std::error_code failed;
    return fs::equivalent(run.path(), folder, failed);
  });
}

// A folder that is given twice, perhaps through a link to the latest run, is one run.
std::vector<RunFolder> runs_in(const std::vector<std::string>& folders) {
  std::vector<RunFolder> runs;
  for (const std::string& folder : folders) {
    if (is_one_of(runs, folder)) continue;
    const RunFolder& run = runs.emplace_back(folder);
    std::error_code failed;
    if (fs::exists(run.metrics(), failed) || fs::exists(run.recipe(), failed)) continue;
    const auto refuse = [&](const std::string& why) {
      throw UserError("--report '" + folder + "': " + why);
    };
    if (!fs::exists(folder, failed)) refuse("there is no such folder");
    if (!fs::is_directory(folder, failed)) refuse("this is a file; give the folder of the run");
    refuse("this folder holds no run (neither metrics.jsonl nor recipe.yaml)");
  }
  return runs;
}

void check_page(const std::vector<RunFolder>& runs, const std::string& page) {
  std::vector<InputFile> inputs;
  for (const RunFolder& run : runs) {
    for (const fs::path& file : {run.metrics(), run.recipe(), run.log(), run.confusion()})
      inputs.push_back({"a file of the run", file});
  }
  const OutputFile output{"--out", page, "choose another name or folder"};
  refuse_to_replace(inputs, {&output, 1});
}

}  // namespace

bool shows_runs(const Flags& flags) { return !flags.report.empty(); }

void show_runs(const Launch& launch, const Flags& flags) {
  if (launch.rank != 0) return;
  const std::vector<RunFolder> runs = runs_in(flags.report);
  if (flags.out.empty()) serve_page(runs, flags.serve);
  check_page(runs, flags.out);
  write_page(flags.out, runs);
  if (flags.verbosity == Verbosity::quiet) return;
  std::printf("%s of %s\n", flags.out.c_str(),
              counted(static_cast<std::int64_t>(runs.size()), "run").c_str());
}

}  // namespace decent
