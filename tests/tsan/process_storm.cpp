// Workers as processes, which exchange messages as storm.h says and map each other's arenas through
// /proc. First they do N exchanges and leave. Then, in each of K rounds, one of them is killed
// while they exchange: all others have to end with PeerLost, with nobody but Mail to tell them.
//
//     process_storm [--exchanges N] [--kills K] [--workers W] [--lanes L] [--seed S]
//
// It prints how long the last one took.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "storm.h"

namespace decent::storm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPeerLost = static_cast<int>(ExitCode::peer_lost);

// ---- a worker ----

// What a worker says of its arena. Pipes pass on as a whole what is shorter than a page.
struct Announcement {
  pid_t process = 0;
  int descriptor = -1;
  char token[32] = {};
  std::int64_t bytes = 0;
};

Announcement announcement_of(const Arena& arena) {
  const ArenaAddress& address = arena.address();
  Announcement announcement{
      .process = address.process, .descriptor = address.descriptor, .bytes = address.bytes};
  if (address.token.size() != sizeof announcement.token) throw std::logic_error("a longer token");
  std::memcpy(announcement.token, address.token.data(), sizeof announcement.token);
  return announcement;
}

template <typename T>
T read_one(const Socket& pipe) {
  T value{};
  if (::read(pipe.descriptor(), &value, sizeof value) != ssize_t{sizeof value})
    throw std::runtime_error("a pipe ended");
  return value;
}

template <typename T>
void write_one(const Socket& pipe, const T& value) {
  if (::write(pipe.descriptor(), &value, sizeof value) != ssize_t{sizeof value})
    throw std::runtime_error("nobody reads a pipe");
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    out = Socket(ends[0]);
    in = Socket(ends[1]);
  }
  Socket out, in;
};

struct Pipes {
  Pipe to_parent, to_worker;
};

// Returns when all workers are connected.
std::shared_ptr<Mail> connect(std::size_t own, std::size_t workers, const Pipes& pipes) {
  const auto arena = Mail::make_arena(workers);
  write_one(pipes.to_parent.in, announcement_of(*arena));
  std::vector<std::shared_ptr<Arena>> arenas;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const auto told = read_one<Announcement>(pipes.to_worker.out);
    arenas.push_back(worker == own ? arena
                                   : Arena::open({.process = told.process,
                                                  .descriptor = told.descriptor,
                                                  .token = {told.token, sizeof told.token},
                                                  .bytes = told.bytes}));
  }
  auto mail = std::make_shared<Mail>(own, arenas);
  write_one(pipes.to_parent.in, 'c');
  read_one<char>(pipes.to_worker.out);
  return mail;
}

// An exit status.
int work(const Plan& plan, std::size_t own, const Pipes& pipes) {
  try {
    run(plan, connect(own, plan.workers, pipes));
    return 0;
  } catch (const PeerLost&) {
    return kPeerLost;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "worker %zu: %s\n", own, error.what());
    return 1;
  }
}

// ---- all of them ----

class Workers {
 public:
  explicit Workers(const Plan& plan) : pipes_(plan.workers) {
    for (std::size_t worker = 0; worker < plan.workers; ++worker)
      processes_.push_back(start(plan, worker));
    for (Pipes& each : pipes_) {
      each.to_parent.in.close();
      each.to_worker.out.close();
    }
    tell_addresses();
    for (const Pipes& each : pipes_) read_one<char>(each.to_parent.out);
    for (const Pipes& each : pipes_) write_one(each.to_worker.in, 'g');
  }

  void kill(std::size_t worker) const { ::kill(processes_[worker], SIGKILL); }

  // Exit statuses, -9 of who was killed; returns when all have ended.
  std::vector<int> ends() const {
    std::vector<int> ends;
    for (const pid_t process : processes_) {
      int status = 0;
      ::waitpid(process, &status, 0);
      ends.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    }
    return ends;
  }

 private:
  pid_t start(const Plan& plan, std::size_t worker) {
    const pid_t parent = ::getpid();
    const pid_t process = ::fork();
    if (process < 0) throw std::runtime_error("no fork");
    if (process > 0) return process;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const Pipes own = std::move(pipes_[worker]);
    pipes_.clear();  // so that those of a worker end with it
    ::_exit(work(plan, worker, own));
  }

  void tell_addresses() const {
    std::vector<Announcement> all;
    for (const Pipes& each : pipes_) all.push_back(read_one<Announcement>(each.to_parent.out));
    for (const Pipes& each : pipes_)
      for (const Announcement& announcement : all) write_one(each.to_worker.in, announcement);
  }

  std::vector<Pipes> pipes_;
  std::vector<pid_t> processes_;
};

bool all_leave(const Plan& plan) {
  const auto begin = Clock::now();
  const std::vector<int> ends = Workers(plan).ends();
  const std::chrono::duration<double> taken = Clock::now() - begin;
  std::printf("%lld exchanges of %zu processes in %.1f s\n", static_cast<long long>(plan.exchanges),
              plan.workers, taken.count());
  return std::count(ends.begin(), ends.end(), 0) == std::ssize(ends);
}

// Seconds until all had ended; negative if one ended in another way than it has to.
double kill_one(const Plan& plan, std::mt19937_64& random) {
  const Workers workers(plan);
  const std::size_t victim = random() % plan.workers;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
  const auto begin = Clock::now();
  workers.kill(victim);
  const std::vector<int> ends = workers.ends();
  const std::chrono::duration<double> taken = Clock::now() - begin;
  for (std::size_t worker = 0; worker < plan.workers; ++worker) {
    const int expected = worker == victim ? -SIGKILL : kPeerLost;
    if (ends[worker] == expected) continue;
    std::fprintf(stderr, "worker %zu was killed, and worker %zu ended with %d\n", victim, worker,
                 ends[worker]);
    return -1;
  }
  return taken.count();
}

bool others_notice(Plan plan, std::int64_t kills) {
  plan.exchanges = std::numeric_limits<std::int64_t>::max();
  std::mt19937_64 random(plan.seed);
  double longest = 0;
  for (std::int64_t i = 0; i < kills; ++i) {
    plan.seed = random();
    const double seconds = kill_one(plan, random);
    if (seconds < 0) return false;
    longest = std::max(longest, seconds);
  }
  std::printf("%lld workers were killed; the last of the others ended %.2f s later at most\n",
              static_cast<long long>(kills), longest);
  return true;
}

}  // namespace
}  // namespace decent::storm

int main(int argc, char** argv) {
  using namespace decent::storm;
  try {
    const Flags flags =
        flags_of({argv, static_cast<std::size_t>(argc)}, {{"--exchanges", 1'000'000},
                                                          {"--kills", 100},
                                                          {"--workers", 4},
                                                          {"--lanes", 2},
                                                          {"--seed", 1}});
    const Plan plan = plan_of(flags);
    return all_leave(plan) && others_notice(plan, flags.at("--kills")) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process_storm: %s\n", error.what());
    return 2;
  }
}
