#include "flags.h"

// No delimiter: --set optimizer.betas=[0.9, 0.99] is one value.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <algorithm>
#include <cxxopts.hpp>
#include <filesystem>
#include <span>
#include <sstream>

#include "decent/config/foreign_names.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/formats.h"
#include "decent/report/predictions/formats.h"
#include "decent/train/recipe_names.h"
#include "flag_rows.h"

namespace decent {
namespace {

cxxopts::Options make_options() {
  cxxopts::Options options("decent-train", "Decentralized data-parallel training of " +
                                               trainable_formats() + " models.");
  for (const FlagRow& row : flag_rows()) {
    const std::string name = row.name == "help" ? "h,help" : row.name;
    if (row.value.empty()) {
      options.add_options()(name, row.help);
    } else if (row.repeats) {
      options.add_options()(name, row.help, cxxopts::value<std::vector<std::string>>(), row.value);
    } else {
      options.add_options()(name, row.help, cxxopts::value<std::string>(), row.value);
    }
  }
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
  const auto advice = config::flag_advice(flag, recipe_names());
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
  const auto nearest = extension.empty() ? std::nullopt : nearest_name(extension, valid);
  throw UserError("--predict '" + file + "': the file's name must end in " +
                  prediction_extensions() + (nearest ? "; did you mean '" + *nearest + "'?" : ""));
}

void check_restarts(const Flags& flags) {
  if (flags.workers == 0) throw UserError("--max-restarts needs --workers N");
  if (flags.reads_checkpoint() || flags.dry_run) throw UserError("--max-restarts is for training");
}

void check_fewer_workers(const Flags& flags, bool has_restarts) {
  if (flags.workers == 0) throw UserError("--min-workers needs --workers N");
  if (!has_restarts) throw UserError("--min-workers needs --max-restarts R");
  if (flags.min_workers > flags.workers) {
    throw UserError("--min-workers " + std::to_string(flags.min_workers) +
                    " is more than --workers " + std::to_string(flags.workers));
  }
}

// The folders may follow one another after one --report, where cxxopts takes the first of the rest
// for a recipe.
std::vector<std::string> folders_in(const cxxopts::ParseResult& given) {
  auto folders = given["report"].as<std::vector<std::string>>();
  if (given.count("config") > 0) folders.push_back(given["config"].as<std::string>());
  const auto& rest = given.unmatched();
  folders.insert(folders.end(), rest.begin(), rest.end());
  return folders;
}

void read_row(const FlagRow& row, const cxxopts::ParseResult& given, Flags& flags) {
  if (!row.read || given.count(row.name) == 0) return;
  if (row.value.empty()) return row.read("", flags);
  if (!row.repeats) return row.read(given[row.name].as<std::string>(), flags);
  for (const std::string& value : given[row.name].as<std::vector<std::string>>())
    row.read(value, flags);
}

void read_report(const cxxopts::ParseResult& given, std::span<char*> arguments, Flags& flags) {
  for (const FlagRow& row : flag_rows()) {
    if (row.use == FlagUse::recipe && given.count(row.name) > 0)
      throw UserError("--report reads runs that are there: it does not go with --" + row.name);
  }
  for (const std::string_view word : arguments) {
    if (word == "--config" || word.starts_with("--config="))
      throw UserError("--report reads the recipes of its runs: it does not go with --config");
  }
  flags.report = folders_in(given);
  for (const std::string& folder : flags.report)
    if (folder.starts_with("--"))
      throw UserError("--report needs the folder of a run, got '" + folder + "'");
  for (const FlagRow& row : flag_rows()) {
    if (row.use == FlagUse::report && !row.repeats && given.count(row.name) > 1)
      throw UserError("--" + row.name + " is given twice");
  }
  if (given.count("out") + given.count("serve") != 1)
    throw UserError("--report needs one of --out FILE.html and --serve PORT");
  for (const FlagRow& row : flag_rows())
    if (row.use == FlagUse::report) read_row(row, given, flags);
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

// The library would take the next flag for the value.
void check_values(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    for (const FlagRow& row : flag_rows()) {
      if (row.value.empty() || row.repeats || row.use != FlagUse::recipe) continue;
      if (words[i] != "--" + row.name || !words[i + 1].starts_with("--")) continue;
      throw UserError(words[i] + " needs a value (see --help), and '" + words[i + 1] +
                      "', which follows it, is a flag");
    }
  }
}

void read_recipe_flags(const cxxopts::ParseResult& given, Flags& flags) {
  for (const FlagRow& row : flag_rows()) {
    if (row.use == FlagUse::report && given.count(row.name) > 0)
      throw UserError("--" + row.name + " is for --report");
  }
  if (given.count("config") == 0)
    throw UserError("a recipe is needed: decent-train RECIPE, or --config FILE (see --help)");
  if (given.count("config") > 1)
    throw UserError("more than one recipe is given (RECIPE and --config FILE are the same)");
  flags.config = given["config"].as<std::string>();
  for (const FlagRow& row : flag_rows()) {
    if (row.use != FlagUse::recipe) continue;
    if (!row.value.empty() && !row.repeats && given.count(row.name) > 1)
      throw UserError("--" + row.name + " is given more than once");
    read_row(row, given, flags);
  }
  check_together(flags, given.count("checkpoint") > 0);
  const bool has_restarts = given.count("max-restarts") > 0;
  if (has_restarts) check_restarts(flags);
  if (given.count("min-workers") > 0) check_fewer_workers(flags, has_restarts);
}

// "auto", or "DIR" for the name of a folder: of "auto|DIR".
std::string written(const std::string& value, const FlagRow& row) {
  std::istringstream choices(row.value);
  for (std::string choice; std::getline(choices, choice, '|');)
    if (choice == value) return value;
  const auto upper = std::find_if(row.value.begin(), row.value.end(),
                                  [](char letter) { return letter >= 'A' && letter <= 'Z'; });
  const auto end = std::find(upper, row.value.end(), '|');
  return {upper, end};
}

}  // namespace

Flags parse_flags(int argc, char** argv) {
  const std::span<char*> arguments(argv + 1, argv + argc);
  check_values({arguments.begin(), arguments.end()});
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
    refuse_single_dash(arguments, options);
    refuse_unknown(given.unmatched(), options);
  }
  Flags flags;
  for (const FlagRow& row : flag_rows())
    if (row.use == FlagUse::any) read_row(row, given, flags);
  if (flags.help || flags.version) return flags;
  if (given.count("report") > 0) {
    read_report(given, arguments, flags);
  } else {
    read_recipe_flags(given, flags);
  }
  return flags;
}

bool names_folder(const std::string& checkpoint) {
  return checkpoint != "auto" && checkpoint != "best" && checkpoint != "none";
}

std::vector<std::string> arguments_of(const Flags& flags) {
  std::vector<std::string> arguments;
  for (const FlagRow& row : flag_rows()) {
    if (row.reach == FlagReach::process) continue;
    for (const std::string& value : row.values(flags)) {
      arguments.push_back("--" + row.name);
      if (!row.value.empty()) arguments.push_back(value);
    }
  }
  return arguments;
}

std::string command_of(const Flags& flags) {
  std::vector<std::string> words;
  for (const FlagRow& row : flag_rows()) {
    if (row.reach != FlagReach::command) continue;
    for (const std::string& value : row.values(flags))
      words.push_back("--" + row.name + (row.value.empty() ? "" : " " + written(value, row)));
  }
  return words.empty() ? "no such flag" : join(words, " ");
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
