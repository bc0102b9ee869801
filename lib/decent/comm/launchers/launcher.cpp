#include "decent/comm/launchers/launcher.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "decent/core/error.h"

namespace decent {
namespace {

// Below the ports that Linux gives to connections (32768 and above), so that none of them is taken.
constexpr int kFirstPort = 20000;
constexpr int kPorts = 32768 - kFirstPort;

constexpr std::array kLaunchers = {&kTorchVariables, &kOpenMpi, &kHydra, &kSlurm, &kPmi};

}  // namespace

std::span<const Launcher* const> launchers() { return kLaunchers; }

LauncherVariables::LauncherVariables(const Variables& variables, std::string_view launcher,
                                     std::filesystem::path proc)
    : variables_(variables), launcher_(launcher), proc_(std::move(proc)) {}

std::string LauncherVariables::required_text(const std::string& name) const {
  const std::string value = text(name);
  if (!value.empty()) return value;
  throw UserError(
      launcher_ + " set only some of its variables: " + name +
      " is missing.\nStart with torchrun, srun or mpirun, or set RANK, WORLD_SIZE, "
      "LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT; without the variables "
      "of any launcher one worker runs.");
}

void LauncherVariables::refuse(const std::string& name, const std::string& expected) const {
  throw UserError(launcher_ + "'s variable " + name + " is '" + text(name) + "': expected " +
                  expected);
}

std::int64_t LauncherVariables::number(const std::string& name, std::int64_t least,
                                       std::int64_t most) const {
  const std::string digits = text(name);
  const char* last = digits.data() + digits.size();
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), last, value);
  if (failed != std::errc() || end != last || value < least || value > most)
    refuse(name, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

int LauncherVariables::required(const std::string& name, int least, int most) const {
  if (!has(name)) required_text(name);
  return static_cast<int>(number(name, least, most));
}

int LauncherVariables::world_size(const std::string& name, const std::string& sign,
                                  Launch& launch) const {
  launch.size_variable = name;
  launch.sign_variable = sign;
  return launch.world_size = required(name, 1, kMaxWorkers);
}

void LauncherVariables::read_place(const std::string& rank, const std::string& size,
                                   Launch& launch) const {
  launch.knows_machine = has(rank) || has(size);
  if (!launch.knows_machine) return;
  launch.local_world_size = required(size, 1, launch.world_size);
  launch.local_rank = required(rank, 0, launch.local_world_size - 1);
}

int LauncherVariables::optional(const std::string& name, int least, int most, int otherwise) const {
  return has(name) ? static_cast<int>(number(name, least, most)) : otherwise;
}

std::int64_t LauncherVariables::id(const std::string& name) const {
  if (!has(name)) required_text(name);
  return number(name, 0, std::numeric_limits<std::uint32_t>::max());
}

void choose_store(const LauncherVariables& variables, const StoreDefaults& defaults,
                  Launch& launch) {
  const auto needed = [&](const std::string& name, const std::string& what) {
    return UserError(launch.launcher + " does not tell its workers " + what + ": give " + name +
                     " to all of them (" + std::string(defaults.example) + ")");
  };
  launch.master_addr = variables.text("MASTER_ADDR");
  if (launch.master_addr.empty())
    launch.master_addr = launch.one_machine() ? "127.0.0.1" : defaults.address;
  if (launch.master_addr.empty()) throw needed("MASTER_ADDR", "on which machine worker 0 is");
  if (!variables.has("MASTER_PORT") && !defaults.id)
    throw needed("MASTER_PORT", "a number that only they have, to choose a port by");
  const int port = kFirstPort + static_cast<int>(defaults.id.value_or(0) % kPorts);
  launch.master_port = variables.optional("MASTER_PORT", 1, 65535, port);
}

}  // namespace decent
