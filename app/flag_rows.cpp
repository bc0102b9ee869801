#include "flag_rows.h"

#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/manifest.h"
#include "decent/core/error.h"
#include "decent/model/formats.h"
#include "decent/report/predictions/formats.h"
#include "decent/runfolder/run_folder.h"

namespace decent {
namespace {

using Values = std::vector<std::string>;

constexpr int kMaxWorkers = 1024;  // on one machine
constexpr int kMaxRestarts = 1'000'000;

// The folder of a run, or of its checkpoints, stands for the newest of them.
std::string newest_in(const std::string& folder) {
  std::error_code failed;
  if (std::filesystem::exists(std::filesystem::path(folder) / kManifestName, failed)) return folder;
  for (const std::filesystem::path& place :
       {RunFolder(folder).checkpoints(), std::filesystem::path(folder)}) {
    const CheckpointFolder checkpoints(place);
    const std::vector<std::int64_t> steps = checkpoints.steps();
    if (!steps.empty()) return checkpoints.path_of(steps.front()).string();
  }
  return folder;
}

// The library's own message would not tell the range.
int number_in(const std::string& flag, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UserError("--" + flag + " '" + text + "': expected an integer from " +
                    std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

FlagRow command_switch(const std::string& name, const std::string& help, FlagUse use,
                       bool Flags::*member) {
  return {.name = name,
          .help = help,
          .value = "",
          .use = use,
          .reach = FlagReach::command,
          .read = [member](const std::string&, Flags& flags) { flags.*member = true; },
          .values = [member](const Flags& flags) { return flags.*member ? Values{""} : Values(); }};
}

FlagRow verbosity_switch(const std::string& name, const std::string& help, Verbosity verbosity) {
  return {.name = name,
          .help = help,
          .value = "",
          .use = FlagUse::any,
          .reach = FlagReach::workers,
          .read =
              [verbosity](const std::string&, Flags& flags) {
                if (flags.verbosity != Verbosity::normal)
                  throw UserError("--quiet and --verbose exclude each other");
                flags.verbosity = verbosity;
              },
          .values =
              [verbosity](const Flags& flags) {
                return flags.verbosity == verbosity ? Values{""} : Values();
              }};
}

FlagRow command_text(const std::string& name, const std::string& help, const std::string& value,
                     std::optional<std::string> Flags::*member) {
  return {.name = name,
          .help = help,
          .value = value,
          .use = FlagUse::recipe,
          .reach = FlagReach::command,
          .read = [member](const std::string& text, Flags& flags) { flags.*member = text; },
          .values =
              [member](const Flags& flags) {
                return flags.*member ? Values{*(flags.*member)} : Values();
              }};
}

FlagRow process_number(const std::string& name, const std::string& help, const std::string& value,
                       FlagUse use, int Flags::*member, int least, int most) {
  return {.name = name,
          .help = help,
          .value = value,
          .use = use,
          .reach = FlagReach::process,
          .read = [=](const std::string& text, Flags& flags) {
            flags.*member = number_in(name, text, least, most);
          }};
}

// --config is the library's positional argument, and --report takes several: these are read apart.
FlagRow recipe_row() {
  return {.name = "config",
          .help = "the recipe, a YAML file; RECIPE without the flag is the same",
          .value = "FILE",
          .use = FlagUse::any,
          .reach = FlagReach::workers,
          .read = nullptr,
          .values = [](const Flags& flags) { return Values{flags.config}; }};
}

FlagRow report_row() {
  return {.name = "report",
          .help = "show a finished or living run as a web page, or compare several",
          .value = "DIR..",
          .use = FlagUse::report,
          .reach = FlagReach::process,
          .read = nullptr,
          .repeats = true};
}

FlagRow set_row() {
  return {.name = "set",
          .help = "override one key of the recipe; VALUE is YAML; may repeat",
          .value = "a.b=VALUE",
          .use = FlagUse::recipe,
          .reach = FlagReach::workers,
          .read = [](const std::string& text, Flags& flags) { flags.overrides.push_back(text); },
          .values = [](const Flags& flags) { return flags.overrides; },
          .repeats = true};
}

FlagRow resume_row() {
  FlagRow row = command_text(
      "resume",
      "continue from a checkpoint: the newest whole one in the output folder (auto), the "
      "checkpoint DIR, or the newest one of the run DIR",
      "auto|DIR", &Flags::resume);
  row.read = [](const std::string& text, Flags& flags) {
    flags.resume = text == "auto" ? text : newest_in(text);
  };
  return row;
}

FlagRow checkpoint_row() {
  return {
      .name = "checkpoint",
      .help =
          "which checkpoint --eval-only, --predict and --export read: the newest one (auto), "
          "the best one by checkpoint.keep_best (best), the checkpoint DIR, or the newest one "
          "of the run DIR; none reads the model file as it is",
      .value = "auto|best|DIR|none",
      .use = FlagUse::recipe,
      .reach = FlagReach::command,
      .read = [](const std::string& text,
                 Flags& flags) { flags.checkpoint = names_folder(text) ? newest_in(text) : text; },
      .values =
          [](const Flags& flags) {
            return flags.reads_checkpoint() ? Values{flags.checkpoint} : Values();
          }};
}

FlagRow out_row() {
  return {.name = "out",
          .help = "with --report: write the page to this file",
          .value = "FILE.html",
          .use = FlagUse::report,
          .reach = FlagReach::process,
          .read = [](const std::string& text, Flags& flags) {
            flags.out = text;
            if (std::filesystem::path(text).extension() != ".html")
              throw UserError("--out '" + text + "': the file's name must end in .html");
          }};
}

}  // namespace

const std::vector<FlagRow>& flag_rows() {
  static const std::vector<FlagRow> all = {
      recipe_row(),
      process_number("workers", "start N workers on this machine, without a launcher", "N",
                     FlagUse::recipe, &Flags::workers, 1, kMaxWorkers),
      process_number("max-restarts",
                     "with --workers: resume from the newest checkpoint, at most R times, after a "
                     "worker was lost",
                     "R", FlagUse::recipe, &Flags::max_restarts, 0, kMaxRestarts),
      process_number("min-workers",
                     "with --max-restarts: start again with one worker fewer, down to M, when one "
                     "dies twice in a row before its first step",
                     "M", FlagUse::recipe, &Flags::min_workers, 1, kMaxWorkers),
      set_row(),
      resume_row(),
      command_switch("eval-only", "evaluate the average of a checkpoint's replicas and exit",
                     FlagUse::recipe, &Flags::eval_only),
      checkpoint_row(),
      command_text("predict",
                   "write the averaged model's predictions for data.predict, " +
                       prediction_extensions() + ", and exit",
                   "FILE", &Flags::predict_file),
      command_text("export", "write the averaged model, " + written_extensions() + ", and exit",
                   "FILE", &Flags::export_file),
      command_switch("dry-run", "check everything without training, print a summary and exit",
                     FlagUse::recipe, &Flags::dry_run),
      report_row(),
      out_row(),
      process_number("serve",
                     "with --report: serve the page on this port of this machine, with new figures "
                     "as they come",
                     "PORT", FlagUse::report, &Flags::serve, 0, 65535),
      command_switch("print-config", "print the resolved recipe as YAML and exit", FlagUse::recipe,
                     &Flags::print_config),
      verbosity_switch("quiet", "print only warnings and errors", Verbosity::quiet),
      verbosity_switch("verbose",
                       "also print who averages with whom in each phase, every tensor of an .onnx "
                       "or .pt2 file, and stack traces of bugs",
                       Verbosity::verbose),
      command_switch("version", "print the version and exit", FlagUse::any, &Flags::version),
      command_switch("help", "print this and exit", FlagUse::any, &Flags::help)};
  return all;
}

}  // namespace decent
