#include "flags.h"

// --set optimizer.betas=[0.9, 0.99] is one value.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <cxxopts.hpp>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

constexpr const char* kNotYet[] = {"resume", "eval-only", "checkpoint", "export"};

cxxopts::Options make_options() {
  cxxopts::Options options("decent-train",
                           "Decentralized data-parallel training of TorchScript models.");
  // clang-format off
  options.add_options()
      ("config", "the recipe, a YAML file (required)", cxxopts::value<std::string>(), "FILE")
      ("set", "override one key of the recipe; VALUE is YAML; may repeat",
       cxxopts::value<std::vector<std::string>>(), "a.b=VALUE")
      ("resume", "continue from a checkpoint (not supported yet)", cxxopts::value<std::string>(), "auto|DIR")
      ("eval-only", "evaluate a checkpoint's average (not supported yet)")
      ("checkpoint", "which checkpoint to read (not supported yet)", cxxopts::value<std::string>(), "auto|DIR|none")
      ("export", "write the averaged model (not supported yet)", cxxopts::value<std::string>(), "FILE")
      ("dry-run", "check everything without training, print a summary and exit")
      ("print-config", "print the resolved recipe as YAML and exit")
      ("quiet", "only warnings and errors")
      ("verbose", "who meets whom in each phase, and stack traces of bugs")
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

[[noreturn]] void refuse_unknown(const std::string& argument, const cxxopts::Options& options) {
  if (argument.rfind('-', 0) != 0) {
    throw UserError("unexpected argument '" + argument + "'; a recipe is given with --config FILE");
  }
  const std::string flag = argument.substr(0, argument.find('='));
  const std::vector<std::string> names = flag_names(options);
  const auto nearest = nearest_name(flag, names);
  throw UserError("unknown flag '" + flag + "'" +
                  (nearest ? "; did you mean '" + *nearest + "'?" : "; valid: " + join(names)));
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
  for (const char* flag : kNotYet) {
    if (given.count(flag) > 0) throw UserError("--" + std::string(flag) + " is not supported yet");
  }
  Flags flags;
  flags.help = given.count("help") > 0;
  flags.version = given.count("version") > 0;
  flags.print_config = given.count("print-config") > 0;
  flags.dry_run = given.count("dry-run") > 0;
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
  return flags;
}

std::string help_text() {
  return make_options().help() +
         "\nExample: four workers on this machine\n"
         "  torchrun --nproc-per-node 4 decent-train --config configs/digits.yaml --set "
         "train.epochs=5\n"
         "\nEvery key of a recipe: docs/recipe.md    How it works: docs/architecture.md\n";
}

}  // namespace decent
