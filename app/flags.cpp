#include "flags.h"

// --set optimizer.betas=[0.9, 0.99] is one value.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <algorithm>
#include <cxxopts.hpp>
#include <filesystem>

#include "decent/config/foreign_names.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/formats.h"

namespace decent {
namespace {

cxxopts::Options make_options() {
  cxxopts::Options options("decent-train", "Decentralized data-parallel training of " +
                                               trainable_formats() + " models.");
  // clang-format off
  options.add_options()
      ("config", "the recipe, a YAML file (required)", cxxopts::value<std::string>(), "FILE")
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
      ("help", "print this and exit");
  // clang-format on
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

[[noreturn]] void refuse_unknown(const std::string& argument, const cxxopts::Options& options) {
  if (argument.rfind('-', 0) != 0) {
    throw UserError("unexpected argument '" + argument + "'; a recipe is given with --config FILE");
  }
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
  if (!given.unmatched().empty()) refuse_unknown(given.unmatched().front(), options);
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
  if (given.count("config") == 0) throw UserError("a recipe is needed: --config FILE (see --help)");
  if (given.count("config") > 1) throw UserError("--config is given more than once");
  flags.config = given["config"].as<std::string>();
  for (const char* once : {"resume", "checkpoint", "export"}) {
    if (given.count(once) > 1)
      throw UserError("--" + std::string(once) + " is given more than once");
  }
  if (given.count("resume") > 0) flags.resume = given["resume"].as<std::string>();
  if (given.count("checkpoint") > 0) flags.checkpoint = given["checkpoint"].as<std::string>();
  if (given.count("export") > 0) flags.export_file = given["export"].as<std::string>();
  check_together(flags, given.count("checkpoint") > 0);
  return flags;
}

std::string help_text() {
  return make_options().help() +
         "\nExample: four workers on this machine\n"
         "  torchrun --nproc-per-node 4 decent-train --config configs/digits.yaml --set "
         "train.epochs=5\n"
         "\nA .pt model is a program and can run code when it is loaded, also by --dry-run: use\n"
         "only models that you trust. An .onnx model and model.weights are data: loading them\n"
         "runs no code.\n"
         "\nEvery key of a recipe: docs/recipe.md    How it works: docs/architecture.md\n";
}

}  // namespace decent
