#include "decent/comm/world.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <system_error>

#include "decent/comm/address.h"
#include "decent/comm/cuda.h"
#include "decent/comm/gather.h"
#include "decent/comm/gloo.h"
#include "decent/comm/meeting.h"
#include "decent/comm/mesh.h"
#include "decent/core/host.h"
#include "decent/core/text.h"
#include "decent/core/version.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

// Gloo's own patience: the control plane is the one that gives up on peers.
constexpr auto kForever = std::chrono::milliseconds(24h);
// How long a worker that ends waits for rank 0 to tell the user why.
constexpr auto kLeaveTimeout = 10s;

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
void throw_if_backends_differ(const std::vector<std::string>& backends) {
  std::vector<std::string> by_nccl;
  std::vector<std::string> by_gloo;
  for (std::size_t rank = 0; rank < backends.size(); ++rank) {
    (backends[rank] == "nccl" ? by_nccl : by_gloo).push_back(std::to_string(rank));
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

World::World(const Launch& launch, WorldOptions options) : launch_(launch) {
  if (launch.world_size == 1) {
    start_control({host_name()}, std::vector<Socket>(1), std::move(options));
    return;
  }
  meeting_ = std::make_unique<Meeting>(launch_, to_milliseconds(options.timeout));
  meet(std::move(options));
}

World::~World() = default;

void World::start_control(std::vector<std::string> hosts, std::vector<Socket> connections,
                          WorldOptions options) {
  control_ = std::make_unique<Control>(ControlOptions{.rank = launch_.rank,
                                                      .hosts = std::move(hosts),
                                                      .connections = std::move(connections),
                                                      .timeout = options.timeout,
                                                      .on_failure = std::move(options.on_failure),
                                                      .launcher = std::move(options.launcher)});
}

void World::meet(WorldOptions options) {
  const Deadline deadline = std::chrono::steady_clock::now() + to_milliseconds(options.timeout);
  const auto share = [&](const std::string& name, const Outcome& own) {
    return meeting_->share(name, own);
  };
  if (launch_.rank == 0) meeting_->set("token", random_token());
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
  const std::string token = meeting_->get("token");
  std::vector<Socket> connections;
  agree(share, "mesh", [&] {
    connections = connect_mesh(launch_.rank, endpoints, listener, token, deadline);
    return std::string();
  });
  std::vector<std::string> hosts;
  for (const Hello& hello : hellos) hosts.push_back(hello.host);
  start_control(std::move(hosts), std::move(connections), std::move(options));
  // From here on the control plane gives up on peers, and gloo's look-ups wait for as long as they
  // live.
  meeting_->wait_for_ever();
}

std::vector<std::string> World::gather_bytes(const std::string& topic, std::string own) {
  return control_->gather(topic, std::move(own));
}

void World::leave_after_rank_0() {
  if (launch_.rank != 0) control_->wait_until_left(0, kLeaveTimeout);
}

std::shared_ptr<Communicator> World::communicator(const DeviceChoice& choice) {
  if (launch_.world_size == 1) return make_single_worker();
  throw_if_backends_differ(gather("backend", std::string(backend_name(choice.backend))));
  const GlooOptions options{
      .interfaces = launch_.interfaces, .address = address_, .timeout = kForever};
  auto host = connect_gloo(meeting_->store(), launch_.rank, launch_.world_size, options);
  if (choice.device.is_cuda()) use_cuda_device(choice.device.index());
  if (choice.backend == Backend::nccl) {
    return connect_nccl(meeting_->store(), std::move(host), [this](const std::string& message) {
      control_->fail_after_loss(
          {.code = ExitCode::peer_lost, .rank = launch_.rank, .lost = false, .message = message});
    });
  }
  return choice.device.is_cuda() ? stage_cuda(std::move(host)) : host;
}

}  // namespace decent
