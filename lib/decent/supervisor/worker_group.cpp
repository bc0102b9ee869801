#include "decent/supervisor/worker_group.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "decent/comm/launch.h"
#include "decent/comm/open_files.h"
#include "decent/core/error.h"
#include "decent/core/host.h"
#include "decent/supervisor/worker_environment.h"

namespace decent {
namespace {

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::array<Socket, 2> connected_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  return {Socket(ends[0]), Socket(ends[1])};
}

void keep_open_in_program(const Socket& socket) {
  if (socket.open()) ::fcntl(socket.descriptor(), F_SETFD, 0);
}

void default_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
}

// Runs in the new process.
[[noreturn]] void become(const std::string& program, std::vector<std::string> arguments,
                         std::vector<std::string> environment, pid_t supervisor) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != supervisor) std::_Exit(0);  // the supervisor has ended already
  default_signals();
  ::execve(program.c_str(), pointers(arguments).data(), pointers(environment).data());
  std::fprintf(stderr, "decent-train: error: cannot start '%s': %s\n", program.c_str(),
               std::strerror(errno));
  std::_Exit(static_cast<int>(ExitCode::user_error));
}

// If the program file was removed before a restart, this gives one message instead of one from each
// worker.
void check_can_start(const std::string& program) {
  if (::access(program.c_str(), X_OK) == 0) return;
  throw UserError("cannot start '" + program + "': " + std::strerror(errno));
}

WorkerEnd end_of(int rank, pid_t process, int status) {
  WorkerEnd end{.rank = rank, .process = process};
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  return end;
}

}  // namespace

WorkerGroup::WorkerGroup(const WorkerCommand& command, int workers)
    : workers_(static_cast<std::size_t>(workers)) {
  check_can_start(command.program);
  if (workers > 1) allow_open_files(workers);
  const Socket store = listen_on("127.0.0.1");
  try {
    for (int rank = 0; rank < workers; ++rank) start(command, rank, store);
  } catch (const std::system_error& error) {
    signal(SIGKILL);
    throw UserError("cannot start " + std::to_string(workers) + " workers: " + error.what());
  }
}

WorkerGroup::~WorkerGroup() {
  signal(SIGKILL);
  for (const Worker& worker : workers_) {
    if (worker.process > 0) ::waitpid(worker.process, nullptr, 0);
  }
}

void WorkerGroup::start(const WorkerCommand& command, int rank, const Socket& store) {
  auto [own_end, its_end] = connected_sockets();
  const bool hosts_store = rank == 0;
  const WorkerPlace place{.rank = rank,
                          .workers = static_cast<int>(workers_.size()),
                          .port = port_of(store),
                          .supervisor = its_end.descriptor(),
                          .store_listener = hosts_store ? store.descriptor() : -1};
  auto environment = environment_of(place, own_environment(), usable_processors());
  std::vector<std::string> arguments = command.arguments;
  arguments.insert(arguments.begin(), command.program);
  const pid_t supervisor = ::getpid();
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process < 0)
    throw std::system_error(errno, std::generic_category(), "worker " + std::to_string(rank));
  if (process == 0) {
    keep_open_in_program(its_end);
    if (hosts_store) keep_open_in_program(store);
    become(command.program, std::move(arguments), std::move(environment), supervisor);
  }
  workers_[static_cast<std::size_t>(rank)] = {.process = process, .socket = std::move(own_end)};
}

int WorkerGroup::running() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                        [](const Worker& worker) { return worker.process > 0; }));
}

// What a worker said stays in its socket when it ends.
void WorkerGroup::listen() {
  for (Worker& worker : workers_) {
    for (char said = 0; ::recv(worker.socket.descriptor(), &said, 1, MSG_DONTWAIT) == 1;)
      (said == kFirstStepDone ? worker.has_stepped : worker.saves_on_signals) = true;
  }
}

bool WorkerGroup::saves_on_signals() {
  listen();
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.saves_on_signals; });
}

bool WorkerGroup::has_stepped() {
  listen();
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.has_stepped; });
}

std::vector<WorkerEnd> WorkerGroup::take_ended() {
  std::vector<WorkerEnd> ended;
  int status = 0;
  for (pid_t process; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                     [&](const Worker& each) { return each.process == process; });
    if (worker == workers_.end()) continue;
    worker->process = 0;
    ended.push_back(end_of(static_cast<int>(worker - workers_.begin()), process, status));
  }
  return ended;
}

void WorkerGroup::signal(int signal) {
  for (const Worker& worker : workers_) {
    if (worker.process > 0) ::kill(worker.process, signal);
  }
}

}  // namespace decent
