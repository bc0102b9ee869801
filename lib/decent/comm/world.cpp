#include "decent/comm/world.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "decent/comm/address.h"
#include "decent/comm/cuda.h"
#include "decent/comm/gather.h"
#include "decent/comm/gloo.h"
#include "decent/comm/meeting.h"
#include "decent/comm/mesh.h"
#include "decent/core/host.h"
#include "decent/core/random_name.h"
#include "decent/core/text.h"
#include "decent/core/version.h"

namespace decent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Endpoint, address, port)

namespace {

using namespace std::chrono_literals;

// Gloo's own patience: the control plane is the one that gives up on peers.
constexpr auto kForever = std::chrono::milliseconds(24h);
// How long a worker that ends waits for rank 0 to tell the user why.
constexpr auto kWaitForRank0 = 10s;

std::chrono::milliseconds to_milliseconds(std::chrono::duration<double> time) {
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::min(time, std::chrono::duration<double>(kForever)));
}

std::string own_build() {
  return std::string(version()) + " (build " + std::string(build_id()) + ")";
}

// The second line of what check_builds() shares.
std::string build_in(const std::string& text) {
  const std::size_t begin = text.find('\n') + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Before all else, which depends on it. This text is the same in all versions of the program.
void check_builds(Meeting& meeting) {
  std::vector<std::string> builds;
  for (const std::string& text : meeting.share("hello", "0\n" + own_build() + "\n")) {
    builds.push_back(build_in(text));
  }
  for (std::size_t rank = 1; rank < builds.size(); ++rank) {
    if (builds[rank] == builds[0]) continue;
    throw SharedError(ExitCode::user_error, "rank " + std::to_string(rank) + " runs decent-train " +
                                                builds[rank] + ", rank 0 runs " + builds[0] +
                                                ": all workers need the same program");
  }
}

// What workers tell each other of themselves before they connect.
struct Hello {
  std::string host;
  std::string route;  // its address on the way to the store
  std::string token;  // rank 0's is what connections between workers begin with
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hello, host, route, token)

// While workers connect, errors of the network are about one another.
Explain network_errors(Explain others) {
  return [others = std::move(others)](const std::exception& error) -> Outcome {
    const bool of_network = dynamic_cast<const std::system_error*>(&error) != nullptr;
    return of_network ? Outcome{ExitCode::peer_lost, error.what()} : others(error);
  };
}

// Each worker chose by what its own machine has; some of them in NCCL would wait for the others.
void throw_if_backends_differ(const std::vector<Backend>& backends) {
  std::vector<std::string> by_nccl;
  std::vector<std::string> by_gloo;
  for (std::size_t rank = 0; rank < backends.size(); ++rank) {
    (backends[rank] == Backend::nccl ? by_nccl : by_gloo).push_back(std::to_string(rank));
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

World::World(const Launch& launch, WorldOptions options)
    : launch_(launch),
      membership_(everyone(launch.world_size)),
      agreement_([this](const std::string& name,
                        std::string own) { return control_->gather(name, std::move(own)); },
                 options.explain) {
  if (launch.world_size == 1) {
    start_control({host_name()}, std::vector<Socket>(1), std::move(options));
    return;
  }
  meeting_ =
      std::make_unique<Meeting>(launch_, to_milliseconds(options.timeout), options.timeout_setting);
  meet(std::move(options));
}

World::~World() = default;

void World::start_control(std::vector<std::string> hosts, std::vector<Socket> connections,
                          WorldOptions options) {
  control_ = std::make_unique<Control>(
      ControlOptions{.rank = launch_.rank,
                     .hosts = std::move(hosts),
                     .connections = std::move(connections),
                     .timeout = options.timeout,
                     .timeout_setting = std::move(options.timeout_setting),
                     .on_failure = std::move(options.on_failure),
                     .launcher = std::move(options.launcher)});
}

void World::meet(WorldOptions options) {
  const Deadline deadline = std::chrono::steady_clock::now() + to_milliseconds(options.timeout);
  check_builds(*meeting_);
  const Agreement at_store(
      [&](const std::string& name, const std::string& own) { return meeting_->share(name, own); },
      network_errors(options.explain));
  const std::vector<Hello> hellos = at_store.agree("address", [&] {
    return Hello{.host = host_name(), .route = route_address(launch_), .token = random_name()};
  });
  Socket listener;
  const std::vector<Endpoint> endpoints = at_store.agree("listen", [&] {
    address_ = choose_address(launch_, hellos);
    listener = listen_on(address_);
    return Endpoint{address_, port_of(listener)};
  });
  std::vector<Socket> connections;
  at_store.agree("mesh", [&] {
    connections = connect_mesh(launch_.rank, endpoints, listener, hellos.front().token, deadline);
  });
  std::vector<std::string> hosts;
  for (const Hello& hello : hellos) hosts.push_back(hello.host);
  start_control(std::move(hosts), std::move(connections), std::move(options));
  // From here on the control plane gives up on peers, and gloo's look-ups wait for as long as they
  // live.
  meeting_->wait_for_ever();
}

void World::agree(const std::string& name, const std::function<void()>& stage) {
  agreement_.agree(name, stage);
}

std::vector<Outcome> World::attempt(const std::string& name, const std::function<void()>& stage) {
  return agreement_.attempt(name, stage);
}

void World::leave_after_rank_0() {
  if (launch_.rank != 0) control_->wait_until_left(0, kWaitForRank0);
}

std::shared_ptr<Communicator> World::communicator(const DeviceChoice& choice) {
  if (launch_.world_size == 1) return make_single_worker();
  throw_if_backends_differ(gather("backend", choice.backend));
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
