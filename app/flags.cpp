#include "flags.h"

// No delimiter: --set optimizer.betas=[0.9, 0.99] is one value.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <algorithm>
#include <array>
#include <charconv>
#include <cxxopts.hpp>
#include <filesystem>
#include <span>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/manifest.h"
#include "decent/config/foreign_names.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/formats.h"
#include "decent/report/predictions/formats.h"
#include "decent/report/run_folder.h"

namespace decent {
namespace {

constexpr int kMostWorkers = 1024;  // on one machine
constexpr int kMostRestarts = 1'000'000;

cxxopts::Options make_options() {
  cxxopts::Options options("decent-train", "Decentralized data-parallel training of " +
                                               trainable_formats() + " models.");
  // clang-format off
  options.add_options()
      ("config", "the recipe, a YAML file; RECIPE without the flag is the same", cxxopts::value<std::string>(), "FILE")
      ("workers", "start N workers on this machine, without a launcher", cxxopts::value<std::string>(), "N")
      ("max-restarts", "with --workers: resume from the newest checkpoint, at most R times, after a worker was lost", cxxopts::value<std::string>(), "R")
      ("set", "override one key of the recipe; VALUE is YAML; may repeat",
       cxxopts::value<std::vector<std::string>>(), "a.b=VALUE")
      ("resume", "continue from a checkpoint: the newest whole one in the output folder (auto), the checkpoint DIR, or the newest one of the run DIR", cxxopts::value<std::string>(), "auto|DIR")
      ("eval-only", "evaluate the average of a checkpoint's replicas and exit")
      ("checkpoint", "which checkpoint --eval-only, --predict and --export read: the newest one (auto), the best one by checkpoint.keep_best (best), the checkpoint DIR, or the newest one of the run DIR; none reads the model file as it is", cxxopts::value<std::string>(), "auto|best|DIR|none")
      ("predict", "write the averaged model's predictions for data.predict, " + prediction_extensions() + ", and exit", cxxopts::value<std::string>(), "FILE")
      ("export", "write the averaged model, " + written_extensions() + ", and exit", cxxopts::value<std::string>(), "FILE")
      ("dry-run", "check everything without training, print a summary and exit")
      ("report", "show a finished or living run as a web page, or compare several",
       cxxopts::value<std::vector<std::string>>(), "DIR..")
      ("out", "with --report: write the page to this file", cxxopts::value<std::string>(), "FILE.html")
      ("serve", "with --report: serve the page on this port of this machine, with new figures as they come", cxxopts::value<std::string>(), "PORT")
      ("print-config", "print the resolved recipe as YAML and exit")
      ("quiet", "print only warnings and errors")
      ("verbose", "also print who averages with whom in each phase, every tensor of an .onnx or .pt2 file, and "
                  "stack traces of bugs")
      ("version", "print the version and exit")
      ("h,help", "print this and exit");
  // clang-format on
  options.parse_positional({"config"});
  options.positional_help("RECIPE");
  options.show_positional_help();
  return options;
}

std::vector<std::string> flag_names(const cxxopts::Options& options) {
  std::vector<std::string> names;
  for (const auto& option : options.group_help("").options)
    names.push_back("--" + option.l.front());
  return names;
}

// The flag that the user has shortened: --eval-only for --eval.
std::optional<std::string> flag_beginning_with(const std::string& word,
                                               const std::vector<std::string>& names) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.starts_with(word + "-");
  });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

// Refuses -workers in place of --workers: cxxopts would read each letter as a flag.
void refuse_single_dash(std::span<char*> arguments, const cxxopts::Options& options) {
  for (const std::string word : arguments) {
    if (word.size() < 3 || word[0] != '-' || word[1] == '-') continue;
    const std::string flag = "-" + word.substr(0, word.find('='));
    if (const auto nearest = nearest_name(flag, flag_names(options)))
      throw UserError("unknown flag '" + word + "'; did you mean '" + *nearest + "'?");
  }
}

[[noreturn]] void refuse_unknown(const std::vector<std::string>& unmatched,
                                 const cxxopts::Options& options) {
  // A word after an unknown flag is probably its value, so the flag is reported.
  const auto first_flag = std::find_if(unmatched.begin(), unmatched.end(),
                                       [](const std::string& word) { return word[0] == '-'; });
  if (first_flag == unmatched.end())
    throw UserError("unexpected argument '" + unmatched.front() + "': one recipe is given already");
  const std::string& argument = *first_flag;
  const std::string flag = argument.substr(0, argument.find('='));
  const std::vector<std::string> names = flag_names(options);
  auto nearest = flag_beginning_with(flag, names);
  const auto advice = config::flag_advice(flag);
  if (!nearest && advice) throw UserError("unknown flag '" + flag + "'; " + *advice);
  if (!nearest) nearest = nearest_name(flag, names);
  throw UserError("unknown flag '" + flag + "'" +
                  (nearest ? "; did you mean '" + *nearest + "'?" : "; valid: " + join(names)));
}

void check_export(const std::string& file) {
  if (find_model_format(file) != nullptr) return;
  throw UserError("--export '" + file + "': the file's name must end in " + written_extensions());
}

void check_predict(const std::string& file) {
  if (find_prediction_format(file) != nullptr) return;
  const std::string extension = std::filesystem::path(file).extension().string();
  std::vector<std::string> valid;
  for (const PredictionFormat& format : prediction_formats()) valid.emplace_back(format.extension);
  const auto nearest = nearest_name(extension, valid);
  throw UserError("--predict '" + file + "': the file's name must end in " +
                  prediction_extensions() + (nearest ? "; did you mean '" + *nearest + "'?" : ""));
}

void check_restarts(const Flags& flags) {
  if (flags.workers == 0) throw UserError("--max-restarts needs --workers N");
  if (flags.reads_checkpoint() || flags.dry_run) throw UserError("--max-restarts is for training");
}

// The number of a flag. Checked here since cxxopts' message would not name the range.
int number_in(const cxxopts::ParseResult& given, const std::string& flag, int least, int most) {
  const std::string text = given[flag].as<std::string>();
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UserError("--" + flag + " '" + text + "': expected an integer from " +
                    std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

// Several folders may follow one --report; cxxopts takes the second for a recipe.
std::vector<std::string> folders_in(const cxxopts::ParseResult& given) {
  auto folders = given["report"].as<std::vector<std::string>>();
  if (given.count("config") > 0) folders.push_back(given["config"].as<std::string>());
  const auto& rest = given.unmatched();
  folders.insert(folders.end(), rest.begin(), rest.end());
  return folders;
}

void read_report(const cxxopts::ParseResult& given, std::span<char*> arguments, Flags& flags) {
  for (const char* other : {"set", "resume", "eval-only", "checkpoint", "predict", "export",
                            "workers", "max-restarts", "dry-run", "print-config"}) {
    if (given.count(other) > 0)
      throw UserError("--report reads runs that are there: it does not go with --" +
                      std::string(other));
  }
  for (const std::string_view word : arguments) {
    if (word == "--config" || word.starts_with("--config="))
      throw UserError("--report reads the recipes of its runs: it does not go with --config");
  }
  flags.report = folders_in(given);
  for (const std::string& folder : flags.report)
    if (folder.starts_with("--"))
      throw UserError("--report needs the folder of a run, got '" + folder + "'");
  for (const char* once : {"out", "serve"})
    if (given.count(once) > 1) throw UserError("--" + std::string(once) + " is given twice");
  if (given.count("out") + given.count("serve") != 1)
    throw UserError("--report needs one of --out FILE.html and --serve PORT");
  if (given.count("serve") > 0) {
    flags.serve = number_in(given, "serve", 0, 65535);
    return;
  }
  flags.out = given["out"].as<std::string>();
  if (std::filesystem::path(flags.out).extension() != ".html")
    throw UserError("--out '" + flags.out + "': the file's name must end in .html");
}

// The folder of a run, or of its checkpoints, stands for its newest checkpoint.
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

void check_together(const Flags& flags, bool has_checkpoint) {
  const bool reads = flags.reads_checkpoint();
  if (flags.resume && reads) {
    throw UserError(
        "--resume trains, --eval-only, --predict and --export do not; --checkpoint says which "
        "checkpoint those read");
  }
  if (flags.dry_run && reads) {
    throw UserError("--dry-run and --eval-only, --predict or --export exclude each other");
  }
  if (has_checkpoint && !reads) {
    throw UserError(
        "--checkpoint is for --eval-only, --predict and --export; training continues from a "
        "checkpoint with --resume auto|DIR");
  }
  if (flags.predict_file) check_predict(*flags.predict_file);
  if (flags.export_file) check_export(*flags.export_file);
}

// Flags that take one value and may be given only once.
constexpr std::array kOnce = {"resume", "checkpoint", "predict",
                              "export", "workers",    "max-restarts"};

// Refuses a flag without its value: cxxopts would take the next flag as the value.
void check_values(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    for (const char* name : kOnce) {
      if (words[i] != "--" + std::string(name) || !words[i + 1].starts_with("--")) continue;
      throw UserError(words[i] + " needs a value (see --help), and '" + words[i + 1] +
                      "', which follows it, is a flag");
    }
  }
}

}  // namespace

Flags parse_flags(int argc, char** argv) {
  check_values({argv + 1, argv + argc});
  cxxopts::Options options = make_options();
  options.allow_unrecognised_options();
  cxxopts::ParseResult given;
  try {
    given = options.parse(argc, argv);
  } catch (const cxxopts::exceptions::exception& error) {
    throw UserError(std::string(error.what()) + "; see --help");
  }
  const auto is_flag = [](const std::string& word) { return word.starts_with("-"); };
  const auto& unmatched = given.unmatched();
  const bool more_folders =
      given.count("report") > 0 && std::none_of(unmatched.begin(), unmatched.end(), is_flag);
  if (!unmatched.empty() && !more_folders) {
    refuse_single_dash({argv + 1, argv + argc}, options);
    refuse_unknown(given.unmatched(), options);
  }
  Flags flags;
  flags.help = given.count("help") > 0;
  flags.version = given.count("version") > 0;
  flags.print_config = given.count("print-config") > 0;
  flags.dry_run = given.count("dry-run") > 0;
  flags.eval_only = given.count("eval-only") > 0;
  if (given.count("quiet") > 0) flags.verbosity = Verbosity::quiet;
  if (given.count("verbose") > 0) flags.verbosity = Verbosity::verbose;
  if (given.count("quiet") > 0 && given.count("verbose") > 0) {
    throw UserError("--quiet and --verbose exclude each other");
  }
  if (given.count("set") > 0) flags.overrides = given["set"].as<std::vector<std::string>>();
  if (flags.help || flags.version) return flags;
  if (given.count("report") > 0) {
    read_report(given, {argv + 1, argv + argc}, flags);
    return flags;
  }
  for (const char* of_report : {"out", "serve"}) {
    if (given.count(of_report) > 0)
      throw UserError("--" + std::string(of_report) + " is for --report");
  }
  if (given.count("config") == 0)
    throw UserError("a recipe is needed: decent-train RECIPE, or --config FILE (see --help)");
  if (given.count("config") > 1)
    throw UserError("more than one recipe is given (RECIPE and --config FILE are the same)");
  flags.config = given["config"].as<std::string>();
  for (const char* once : kOnce) {
    if (given.count(once) > 1)
      throw UserError("--" + std::string(once) + " is given more than once");
  }
  if (given.count("resume") > 0) flags.resume = given["resume"].as<std::string>();
  if (flags.resume && *flags.resume != "auto") flags.resume = newest_in(*flags.resume);
  if (given.count("checkpoint") > 0) flags.checkpoint = given["checkpoint"].as<std::string>();
  if (names_folder(flags.checkpoint)) flags.checkpoint = newest_in(flags.checkpoint);
  if (given.count("predict") > 0) flags.predict_file = given["predict"].as<std::string>();
  if (given.count("export") > 0) flags.export_file = given["export"].as<std::string>();
  if (given.count("workers") > 0) flags.workers = number_in(given, "workers", 1, kMostWorkers);
  if (given.count("max-restarts") > 0)
    flags.max_restarts = number_in(given, "max-restarts", 0, kMostRestarts);
  check_together(flags, given.count("checkpoint") > 0);
  if (given.count("max-restarts") > 0) check_restarts(flags);
  return flags;
}

bool names_folder(const std::string& checkpoint) {
  return checkpoint != "auto" && checkpoint != "best" && checkpoint != "none";
}

std::vector<std::string> arguments_of(const Flags& flags) {
  std::vector<std::string> arguments = {"--config", flags.config};
  const auto add = [&](bool given, std::vector<std::string> words) {
    if (given) arguments.insert(arguments.end(), words.begin(), words.end());
  };
  for (const std::string& override : flags.overrides) add(true, {"--set", override});
  add(flags.resume.has_value(), {"--resume", flags.resume.value_or("")});
  add(flags.eval_only, {"--eval-only"});
  add(flags.reads_checkpoint(), {"--checkpoint", flags.checkpoint});
  add(flags.predict_file.has_value(), {"--predict", flags.predict_file.value_or("")});
  add(flags.export_file.has_value(), {"--export", flags.export_file.value_or("")});
  add(flags.print_config, {"--print-config"});
  add(flags.dry_run, {"--dry-run"});
  add(flags.verbosity == Verbosity::quiet, {"--quiet"});
  add(flags.verbosity == Verbosity::verbose, {"--verbose"});
  return arguments;
}

std::string help_text() {
  return make_options().help() +
         "\nExample: four workers on this machine, without and with a launcher\n"
         "  decent-train configs/digits.yaml --workers 4 --set train.epochs=5\n"
         "  torchrun --nproc-per-node 4 decent-train --config configs/digits.yaml\n"
         "\nA page that compares two runs\n"
         "  decent-train --report runs/digits runs/digits-ring --out compare.html\n"
         "\nA .pt model is a program and can run code when it is loaded, even with --dry-run: use\n"
         "only models that you trust. An .onnx or .pt2 model and model.weights are data: loading\n"
         "them runs no code.\n"
         "\nEvery key of a recipe: docs/recipe.md    How it works: docs/architecture.md\n";
}

}  // namespace decent
