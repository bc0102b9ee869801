#pragma once
// The known launchers, one file and one row each. Internal to this room; others use launch.h.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "decent/comm/launch.h"

namespace decent {

constexpr int kMaxWorkers = 1 << 20;

/// The environment as the reader of one launcher sees it. Errors are UserErrors that name the
/// launcher and the variable.
class LauncherVariables {
 public:
  /// `proc`: see find_launcher.
  LauncherVariables(const Variables& variables, std::string_view launcher,
                    std::filesystem::path proc);

  bool has(const std::string& name) const { return variables_(name).has_value(); }
  std::string text(const std::string& name) const { return variables_(name).value_or(""); }
  std::string required_text(const std::string& name) const;
  int required(const std::string& name, int least, int most) const;
  /// Reads the number of workers from `name`, stores it in `launch` and returns it. `sign`: see
  /// Launch::sign_variable.
  int world_size(const std::string& name, const std::string& sign, Launch& launch) const;
  /// Reads the local rank and the number of workers on this machine. If neither variable is set,
  /// workers find out once they have met.
  void read_place(const std::string& rank, const std::string& size, Launch& launch) const;
  int optional(const std::string& name, int least, int most, int otherwise) const;
  /// The number of a batch system's job, unsigned with 32 bits.
  std::int64_t id(const std::string& name) const;
  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;

  const std::filesystem::path& proc() const { return proc_; }

 private:
  std::int64_t number(const std::string& name, std::int64_t least, std::int64_t most) const;

  const Variables& variables_;
  std::string launcher_;
  std::filesystem::path proc_;
};

struct Launcher {
  std::string_view name;  // in messages
  /// Whether it started this process.
  bool (*started_this)(const Variables& variables);
  void (*read)(const LauncherVariables& variables, Launch& launch);
};

extern const Launcher kTorchVariables;
extern const Launcher kOpenMpi;
extern const Launcher kHydra;
extern const Launcher kSlurm;
extern const Launcher kPmi;

/// The launchers in the order in which they are asked: one may run inside another (mpirun starts
/// its daemons with srun), and then the inner one counts.
std::span<const Launcher* const> launchers();

/// What can be known of the store's place from a launcher that neither hosts a store nor names one.
struct StoreDefaults {
  std::string address;             // empty: unknown
  std::optional<std::int64_t> id;  // the same for all workers of a start, another at other starts
  std::string_view example;        // how users set a variable for all workers
};

/// Sets the store's address and port: MASTER_ADDR and MASTER_PORT if the user gave them. Otherwise
/// the address is 127.0.0.1 if all workers are on this machine, else the default one, and the port
/// follows from the id.
void choose_store(const LauncherVariables& variables, const StoreDefaults& defaults,
                  Launch& launch);

}  // namespace decent
