#pragma once
// Errors as the user sees them. Every error that reaches main carries the exit code of the program
// and a message that says what is wrong, where, and what would be valid. Broken invariants are
// std::logic_error or assertions.

#include <stdexcept>
#include <string>

namespace decent {

/// Exit codes of the program; README.md lists them for users.
enum class ExitCode : int {
  done = 0,
  bug = 1,
  user_error = 2,
  peer_lost = 3,
  checkpoint_damaged = 4,
  diverged = 5,
  write_failed = 6,
  stopped = 75,
};

/// An error that ends the program with `code()` and a message for the user, at most five lines
/// long.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The user can fix it: a flag, a recipe, a model, data.
class UserError : public Error {
 public:
  explicit UserError(const std::string& message) : Error(ExitCode::user_error, message) {}
};

/// An error that all workers throw together, so that one of them reports it for all.
class SharedError : public Error {
 public:
  using Error::Error;
};

/// Another worker is gone or cannot be reached.
class PeerLost : public Error {
 public:
  explicit PeerLost(const std::string& message) : Error(ExitCode::peer_lost, message) {}
};

/// A checkpoint is damaged: a file is truncated, changed or missing.
class CheckpointDamaged : public Error {
 public:
  explicit CheckpointDamaged(const std::string& message)
      : Error(ExitCode::checkpoint_damaged, message) {}
};

/// A file could not be written: disk full, permission.
class WriteError : public Error {
 public:
  explicit WriteError(const std::string& message) : Error(ExitCode::write_failed, message) {}
};

}  // namespace decent
