#include "decent/comm/world.h"

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <system_error>
#include <thread>

#include "decent/comm/address.h"
#include "decent/comm/cuda.h"
#include "decent/comm/gloo.h"
#include "decent/comm/group_text.h"
#include "decent/comm/mesh.h"
#include "decent/core/host.h"
#include "decent/core/text.h"
#include "decent/core/version.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

// Once the control plane is up it is the one that gives up on peers, not the store.
constexpr auto kForever = std::chrono::milliseconds(24h);
// Under this key the first worker that gives up on others says who tells the user, and what.
const std::string kGivenUp = "given up";
// How long the store's host waits for others to read the last answer before it leaves and takes the
// store along.
constexpr auto kLeaveTimeout = 10s;

c10::intrusive_ptr<c10d::Store> connect_store(const Launch& launch,
                                              std::chrono::milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch.master_port);
  options.isServer = launch.hosts_store();
  options.numWorkers = static_cast<std::size_t>(launch.world_size);
  options.waitWorkers = false;
  options.timeout = patience;
  try {
    return c10::make_intrusive<c10d::TCPStore>(launch.master_addr, options);
  } catch (const std::exception& error) {
    throw PeerLost("worker " + std::to_string(launch.rank) + " cannot " +
                   (launch.hosts_store() ? "host" : "reach") + " the store at " +
                   launch.master_addr + ":" + std::to_string(launch.master_port) + ": " +
                   first_line(error));
  }
}

std::string encode(const Outcome& outcome) {
  return std::to_string(static_cast<int>(outcome.code)) + "\n" + outcome.message;
}

Outcome decode(const std::vector<std::uint8_t>& bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const std::size_t newline = text.find('\n');
  return {static_cast<ExitCode>(std::stoi(text.substr(0, newline))), text.substr(newline + 1)};
}

std::vector<std::uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::chrono::milliseconds to_milliseconds(std::chrono::duration<double> time) {
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::min(time, std::chrono::duration<double>(kForever)));
}

std::string random_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 8; ++i) token += std::to_string(device());
  return token;
}

std::string own_build() {
  return std::string(version()) + " (build " + std::string(build_id()) + ")";
}

std::string take_line(std::string& text) {
  const std::size_t newline = text.find('\n');
  const std::string line = text.substr(0, newline);
  text.erase(0, newline == std::string::npos ? newline : newline + 1);
  return line;
}

// The first thing that workers tell each other; the build before all, since the rest depends on it.
struct Hello {
  std::string build;
  std::string host;
  std::string route;  // its address on the way to the store
};

void check_builds(const std::vector<std::string>& builds) {
  for (std::size_t rank = 1; rank < builds.size(); ++rank) {
    if (builds[rank] == builds[0]) continue;
    throw SharedError(ExitCode::user_error, "rank " + std::to_string(rank) + " runs decent-train " +
                                                builds[rank] + ", rank 0 runs " + builds[0] +
                                                ": all workers need the same program");
  }
}

std::vector<Hello> take_hellos(std::vector<Outcome> outcomes) {
  std::vector<std::string> builds;
  for (Outcome& outcome : outcomes) builds.push_back(take_line(outcome.message));
  check_builds(builds);
  std::vector<Hello> hellos;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    std::string& text = outcomes[rank].message;
    Hello hello{.build = builds[rank], .host = take_line(text), .route = take_line(text)};
    hellos.push_back(std::move(hello));
  }
  throw_if_failed(outcomes);
  return hellos;
}

std::vector<std::string> rank_keys(const std::string& name, int workers) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < workers; ++rank) keys.push_back(name + "/" + std::to_string(rank));
  return keys;
}

// The same words from whoever gives up, and one worker that says them: the lowest rank that is
// there.
[[noreturn]] void give_up(c10d::Store& store, const Launch& launch) {
  const std::vector<std::uint8_t> bytes = store.get(kGivenUp);
  std::string message(bytes.begin(), bytes.end());
  const int reporter = std::stoi(take_line(message));
  // Those that still wait shall read it before the store goes.
  if (launch.hosts_store()) std::this_thread::sleep_for(500ms);
  if (reporter == launch.rank) throw PeerLost(message);
  throw SharedError(ExitCode::peer_lost, message);
}

/// Whether all keys were there in time. Throws where another worker has given up.
bool wait_for_keys(c10d::Store& store, const Launch& launch, const std::vector<std::string>& keys,
                   std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  auto pause = 1ms;
  while (!store.check(keys)) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    if (store.check({kGivenUp})) give_up(store, launch);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
  return true;
}

[[noreturn]] void report_missing(c10d::Store& store, const Launch& launch,
                                 const std::vector<std::string>& keys,
                                 std::chrono::milliseconds patience) {
  // Several workers may run out of patience at the same moment; the first one's words count.
  if (store.add(kGivenUp + "/count", 1) == 1) {
    std::vector<std::string> missing;
    std::optional<std::size_t> reporter;
    for (std::size_t rank = 0; rank < keys.size(); ++rank) {
      if (!store.check({keys[rank]})) {
        missing.push_back(std::to_string(rank));
      } else if (!reporter) {
        reporter = rank;
      }
    }
    store.set(kGivenUp,
              to_bytes(std::to_string(reporter.value()) + "\nworker " + join(missing) + " of " +
                       std::to_string(launch.world_size) + " has not shown up within " +
                       seconds_text(patience) + " (parallel.timeout_s)"));
  }
  give_up(store, launch);
}

// For the store's host, which must not take it along while others still read from it.
void wait_for_count(c10d::Store& store, const std::string& key, int count) {
  const auto deadline = std::chrono::steady_clock::now() + kLeaveTimeout;
  while (store.add(key, 0) < count && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(2ms);
  }
}

using Share = std::function<std::vector<Outcome>(const std::string& name, const Outcome& own)>;

// Runs a stage on every worker; all of them go on or all throw. Returns what each stage gave.
std::vector<Outcome> agree(const Share& share, const std::string& name,
                           const std::function<std::string()>& stage) {
  Outcome outcome;
  try {
    outcome.message = stage();
  } catch (const Error& error) {
    outcome = {error.code(), error.what()};
  } catch (const std::system_error& error) {
    outcome = {ExitCode::peer_lost, error.what()};
  }
  std::vector<Outcome> outcomes = share(name, outcome);
  throw_if_failed(outcomes);
  return outcomes;
}

std::vector<Hello> exchange_hellos(const Launch& launch, const Share& share) {
  Outcome outcome;
  Hello hello{.build = own_build(), .host = host_name(), .route = {}};
  try {
    hello.route = route_address(launch);
  } catch (const UserError& error) {
    outcome = {error.code(), error.what()};
  }
  outcome.message = hello.build + "\n" + hello.host + "\n" + hello.route + "\n" + outcome.message;
  return take_hellos(share("hello", outcome));
}

// Each worker chose by what its own machine has; some of them in NCCL would wait for the others.
void throw_if_backends_differ(const std::vector<Outcome>& backends) {
  std::vector<std::string> by_nccl;
  std::vector<std::string> by_gloo;
  for (std::size_t rank = 0; rank < backends.size(); ++rank) {
    (backends[rank].message == "nccl" ? by_nccl : by_gloo).push_back(std::to_string(rank));
  }
  if (by_nccl.empty() || by_gloo.empty()) return;
  throw SharedError(ExitCode::user_error,
                    "the workers' backends differ: nccl on rank " + join(by_nccl) +
                        ", gloo on rank " + join(by_gloo) +
                        ". Choose backend gloo, or device cpu, for all of them");
}

// Where all workers come to the store by a loopback address they are all on its machine.
std::string choose_address(const Launch& launch, const std::vector<Hello>& hellos) {
  const std::string& own = hellos[static_cast<std::size_t>(launch.rank)].route;
  const bool all_local = std::all_of(hellos.begin(), hellos.end(),
                                     [](const Hello& hello) { return is_loopback(hello.route); });
  return is_loopback(own) && !all_local ? address_for_others(launch) : own;
}

}  // namespace

void silence_c10d_warnings() {
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  c10::initLogging();
}

struct World::Stores {
  c10::intrusive_ptr<c10d::Store> root;
  c10::intrusive_ptr<c10d::Store> store;  // root under this attempt's prefix
};

void throw_if_failed(const std::vector<Outcome>& outcomes) {
  const auto failed = [](const Outcome& outcome) { return outcome.code != ExitCode::done; };
  const auto first = std::find_if(outcomes.begin(), outcomes.end(), failed);
  if (first == outcomes.end()) return;
  const bool alike = std::all_of(outcomes.begin(), outcomes.end(), [&](const Outcome& outcome) {
    return outcome.code == first->code && outcome.message == first->message;
  });
  if (alike) throw SharedError(first->code, first->message);

  // One mistake gets one message, though each worker may have met it in data of its own.
  std::vector<std::string> like_first;
  std::vector<std::string> others;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (!failed(outcomes[rank])) continue;
    const bool same =
        outcomes[rank].code == first->code && outcomes[rank].message == first->message;
    (same ? like_first : others).push_back(std::to_string(rank));
  }
  // What only rank 0 looks at (the output folder) needs no name.
  const bool only_rank_0 = others.empty() && like_first == std::vector<std::string>{"0"};
  std::string message =
      only_rank_0 ? first->message : "rank " + join(like_first) + ": " + first->message;
  if (!others.empty()) message += "\n(failed too: rank " + join(others) + ")";
  throw SharedError(first->code, message);
}

World::World(const Launch& launch, WorldOptions options) : launch_(launch) {
  if (launch.world_size == 1) {
    control_ =
        std::make_unique<Control>(ControlOptions{.rank = 0,
                                                 .hosts = {host_name()},
                                                 .connections = std::vector<Socket>(1),
                                                 .timeout = options.timeout,
                                                 .on_failure = std::move(options.on_failure)});
    return;
  }
  auto root = connect_store(launch, to_milliseconds(options.timeout));
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>(launch.store_prefix + "/decent", root);
  stores_ = std::make_unique<Stores>(Stores{std::move(root), std::move(prefixed)});
  meet(std::move(options));
}

World::~World() = default;

void World::meet(WorldOptions options) {
  const auto patience = to_milliseconds(options.timeout);
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  const auto share = [&](const std::string& name, const Outcome& own) {
    return share_within(name, own, patience);
  };
  if (launch_.rank == 0) stores_->store->set("token", to_bytes(random_token()));
  const std::vector<Hello> hellos = exchange_hellos(launch_, share);

  Socket listener;
  const auto listening = agree(share, "listen", [&] {
    address_ = choose_address(launch_, hellos);
    listener = listen_on(address_);
    return address_ + "\n" + std::to_string(port_of(listener));
  });
  std::vector<Endpoint> endpoints;
  for (Outcome outcome : listening) {
    const std::string address = take_line(outcome.message);
    endpoints.push_back({address, std::stoi(outcome.message)});
  }
  const std::vector<std::uint8_t> token = stores_->store->get("token");
  std::vector<Socket> connections;
  agree(share, "mesh", [&] {
    connections = connect_mesh(launch_.rank, endpoints, listener,
                               std::string(token.begin(), token.end()), deadline);
    return std::string();
  });
  std::vector<std::string> hosts;
  for (const Hello& hello : hellos) hosts.push_back(hello.host);
  control_ = std::make_unique<Control>(ControlOptions{.rank = launch_.rank,
                                                      .hosts = std::move(hosts),
                                                      .connections = std::move(connections),
                                                      .timeout = options.timeout,
                                                      .on_failure = std::move(options.on_failure)});
  // From here on the control plane gives up on peers, and gloo's look-ups wait for as long as they
  // live.
  stores_->root->setTimeout(kForever);
}

std::vector<Outcome> World::share(const std::string& name, const Outcome& own) {
  return share_within(name, own, kForever);
}

std::vector<Outcome> World::share_within(const std::string& name, const Outcome& own,
                                         std::chrono::milliseconds patience) {
  if (!stores_) return {own};
  c10d::Store& store = *stores_->store;
  const std::vector<std::string> keys = rank_keys(name, launch_.world_size);
  std::vector<Outcome> outcomes;
  try {
    store.set(keys[static_cast<std::size_t>(launch_.rank)], to_bytes(encode(own)));
    if (!wait_for_keys(store, launch_, keys, patience)) {
      report_missing(store, launch_, keys, patience);
    }
    for (const std::string& key : keys) outcomes.push_back(decode(store.get(key)));
    store.add(name + "/read", 1);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerLost("the store at " + launch_.master_addr + ":" +
                   std::to_string(launch_.master_port) + ", which " +
                   (launch_.agent_store ? "torchrun" : "worker 0") + " hosts, was lost (" + name +
                   "): " + first_line(error));
  }
  if (launch_.hosts_store()) wait_for_count(store, name + "/read", launch_.world_size);
  return outcomes;
}

void World::leave_after_rank_0() {
  if (!stores_) return;
  c10d::Store& store = *stores_->store;
  try {
    if (launch_.rank == 0) {
      store.set("told", to_bytes("1"));
      if (launch_.hosts_store()) wait_for_count(store, "left", launch_.world_size - 1);
    } else {
      store.wait({"told"}, kLeaveTimeout);
      store.add("left", 1);
    }
  } catch (const std::exception&) {
    // The others have left already: there is nobody to wait for.
  }
}

std::shared_ptr<Communicator> World::communicator(const DeviceChoice& choice) {
  if (!stores_) return make_single_worker();
  throw_if_backends_differ(
      share("backend", {ExitCode::done, std::string(backend_name(choice.backend))}));
  const GlooOptions options{
      .interfaces = launch_.interfaces, .address = address_, .timeout = kForever};
  auto host = connect_gloo(*stores_->store, launch_.rank, launch_.world_size, options);
  if (choice.device.is_cuda()) use_cuda_device(choice.device.index());
  if (choice.backend == Backend::nccl) {
    return connect_nccl(*stores_->store, std::move(host), [this](const std::string& message) {
      control_->fail_after_loss(
          {.code = ExitCode::peer_lost, .rank = launch_.rank, .lost = false, .message = message});
    });
  }
  return choice.device.is_cuda() ? stage_cuda(std::move(host)) : host;
}

}  // namespace decent
