#include "flags.h"

// --set optimizer.betas=[0.9, 0.99] is one value.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <algorithm>
#include <charconv>
#include <cxxopts.hpp>
#include <filesystem>
#include <span>

#include "decent/config/foreign_names.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/formats.h"

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
      ("max-restarts", "with --workers: how often to go on by --resume auto after a worker was lost", cxxopts::value<std::string>(), "R")
      ("set", "override one key of the recipe; VALUE is YAML; may repeat",
       cxxopts::value<std::vector<std::string>>(), "a.b=VALUE")
      ("resume", "continue from a checkpoint: the newest whole one of the output folder, or this one", cxxopts::value<std::string>(), "auto|DIR")
      ("eval-only", "evaluate the average of a checkpoint's replicas and exit")
      ("checkpoint", "which checkpoint --eval-only and --export read; none: the model file as it is", cxxopts::value<std::string>(), "auto|DIR|none")
      ("export", "write the averaged model, " + written_extensions() + ", and exit", cxxopts::value<std::string>(), "FILE")
      ("dry-run", "check everything without training, print a summary and exit")
      ("print-config", "print the resolved recipe as YAML and exit")
      ("quiet", "only warnings and errors")
      ("verbose", "who meets whom in each phase, every tensor of an .onnx file, and stack traces of "
                  "bugs")
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

// --eval for --eval-only.
std::optional<std::string> flag_beginning_with(const std::string& word,
                                               const std::vector<std::string>& names) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.starts_with(word + "-");
  });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

// -workers for --workers: cxxopts takes its letters for flags of their own.
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
  // What follows an unknown flag is likely to be its value.
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

// cxxopts' own message would not tell the range.
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

void check_restarts(const Flags& flags) {
  if (flags.workers == 0) throw UserError("--max-restarts needs --workers N");
  if (flags.eval_only || flags.export_file || flags.dry_run)
    throw UserError("--max-restarts is for training");
}

void check_together(const Flags& flags, bool has_checkpoint) {
  const bool reads = flags.eval_only || flags.export_file;
  if (flags.resume && reads) {
    throw UserError(
        "--resume trains, --eval-only and --export do not; --checkpoint says which "
        "checkpoint those read");
  }
  if (flags.dry_run && reads) {
    throw UserError("--dry-run and --eval-only or --export exclude each other");
  }
  if (has_checkpoint && !reads) {
    throw UserError(
        "--checkpoint is for --eval-only and --export; training continues from a "
        "checkpoint with --resume auto|DIR");
  }
  if (flags.export_file) check_export(*flags.export_file);
}

}  // namespace

Flags parse_flags(int argc, char** argv) {
  cxxopts::Options options = make_options();
  options.allow_unrecognised_options();
  cxxopts::ParseResult given;
  try {
    given = options.parse(argc, argv);
  } catch (const cxxopts::exceptions::exception& error) {
    throw UserError(std::string(error.what()) + "; see --help");
  }
  if (!given.unmatched().empty()) {
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
  if (given.count("config") == 0)
    throw UserError("a recipe is needed: decent-train RECIPE, or --config FILE (see --help)");
  if (given.count("config") > 1)
    throw UserError("more than one recipe is given (RECIPE and --config FILE are the same)");
  flags.config = given["config"].as<std::string>();
  for (const char* once : {"resume", "checkpoint", "export", "workers", "max-restarts"}) {
    if (given.count(once) > 1)
      throw UserError("--" + std::string(once) + " is given more than once");
  }
  if (given.count("resume") > 0) flags.resume = given["resume"].as<std::string>();
  if (given.count("checkpoint") > 0) flags.checkpoint = given["checkpoint"].as<std::string>();
  if (given.count("export") > 0) flags.export_file = given["export"].as<std::string>();
  if (given.count("workers") > 0) flags.workers = number_in(given, "workers", 1, kMostWorkers);
  if (given.count("max-restarts") > 0)
    flags.max_restarts = number_in(given, "max-restarts", 0, kMostRestarts);
  check_together(flags, given.count("checkpoint") > 0);
  if (given.count("max-restarts") > 0) check_restarts(flags);
  return flags;
}

std::vector<std::string> arguments_of(const Flags& flags) {
  std::vector<std::string> arguments = {"--config", flags.config};
  const auto add = [&](bool given, std::vector<std::string> words) {
    if (given) arguments.insert(arguments.end(), words.begin(), words.end());
  };
  for (const std::string& override : flags.overrides) add(true, {"--set", override});
  add(flags.resume.has_value(), {"--resume", flags.resume.value_or("")});
  add(flags.eval_only, {"--eval-only"});
  if (flags.eval_only || flags.export_file) add(true, {"--checkpoint", flags.checkpoint});
  add(flags.export_file.has_value(), {"--export", flags.export_file.value_or("")});
  add(flags.print_config, {"--print-config"});
  add(flags.dry_run, {"--dry-run"});
  add(flags.verbosity == Verbosity::quiet, {"--quiet"});
  add(flags.verbosity == Verbosity::verbose, {"--verbose"});
  return arguments;
}

std::string help_text() {
  return make_options().help() +
         "\nExample: four workers on this machine, by themselves and by a launcher\n"
         "  decent-train configs/digits.yaml --workers 4 --set train.epochs=5\n"
         "  torchrun --nproc-per-node 4 decent-train --config configs/digits.yaml\n"
         "\nA .pt model is a program and can run code when it is loaded, also by --dry-run: use\n"
         "only models that you trust. An .onnx model and model.weights are data: loading them\n"
         "runs no code.\n"
         "\nEvery key of a recipe: docs/recipe.md    How it works: docs/architecture.md\n";
}

}  // namespace decent
