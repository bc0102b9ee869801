#pragma once
// The launchers that are known: one file and one row each. Internal to this room; launch.h is what
// others use.

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
  /// The number of workers, which stands in `name`, as `launch` has it from now on. `sign`: see
  /// Launch::sign_variable.
  int world_size(const std::string& name, const std::string& sign, Launch& launch) const;
  /// Which of the workers of this machine this one is, and how many those are; where neither
  /// variable is set, workers tell each other.
  void read_place(const std::string& rank, const std::string& size, Launch& launch) const;
  int optional(const std::string& name, int least, int most, int otherwise) const;
  /// A number that a batch system gives its jobs: of 32 bits, without a sign.
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

/// What a launcher that hosts no store and names none knows of the place for it.
struct StoreDefaults {
  std::string address;             // empty: unknown
  std::optional<std::int64_t> id;  // the same for all workers of this start, another for others
  std::string_view example;        // how its user gives all workers a variable
};

/// Sets the store's address and port: MASTER_ADDR and MASTER_PORT where the user gave them. Else
/// 127.0.0.1 where all workers are on this machine, or the default address, and a port from the id.
void choose_store(const LauncherVariables& variables, const StoreDefaults& defaults,
                  Launch& launch);

}  // namespace decent
