#include "decent/comm/world.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <system_error>
#include <utility>

#include "decent/comm/address.h"
#include "decent/comm/by_place.h"
#include "decent/comm/cuda.h"
#include "decent/comm/gather.h"
#include "decent/comm/gloo.h"
#include "decent/comm/mesh.h"
#include "decent/comm/network.h"
#include "decent/comm/open_files.h"
#include "decent/comm/rendezvous.h"
#include "decent/comm/shared_memory/shared_communicator.h"
#include "decent/comm/watched_connections.h"
#include "decent/core/gpu_errors.h"
#include "decent/core/host.h"
#include "decent/core/text.h"
#include "decent/core/version.h"

namespace decent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Endpoint, address, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ArenaAddress, process, descriptor, token, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuId, id, card)

namespace {

using namespace std::chrono_literals;

// Gloo's own patience: the control plane is the one that gives up on peers.
constexpr auto kForever = std::chrono::milliseconds(24h);
// How long a worker that ends waits for another one to tell the user why.
constexpr auto kWaitForSpeaker = 10s;

std::chrono::milliseconds to_milliseconds(std::chrono::duration<double> time) {
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::min(time, std::chrono::duration<double>(kForever)));
}

// The second line of the text that check_builds() shares.
std::string build_in(const std::string& text) {
  const std::size_t begin = text.find('\n') + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Comes first, because all else depends on it. This text is the same in all versions.
void check_builds(Rendezvous& rendezvous) {
  std::vector<std::string> builds;
  for (const std::string& text : rendezvous.share("hello", "0\n" + version_text() + "\n")) {
    builds.push_back(build_in(text));
  }
  for (std::size_t rank = 1; rank < builds.size(); ++rank) {
    if (builds[rank] == builds[0]) continue;
    throw SharedError(ExitCode::user_error, "rank " + std::to_string(rank) + " runs decent-train " +
                                                builds[rank] + ", rank 0 runs " + builds[0] +
                                                ": all workers need the same program");
  }
}

// What workers tell each other about themselves before they connect.
struct Hello {
  std::string host;
  std::string machine;  // host_identity()
  std::string route;    // its address on the way to the store
  std::string token;    // connections between workers begin with rank 0's
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hello, host, machine, route, token)

// The choices that workers tell each other before they exchange tensors.
struct Choice {
  Backend backend = Backend::gloo;
  bool may_share_memory = false;
  bool gpu_network = false;  // or it does not matter
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Choice, backend, may_share_memory, gpu_network)

// While workers connect, a network error means that another worker is lost.
Explain network_errors(Explain others) {
  return [others = std::move(others)](const std::exception& error) -> Outcome {
    const bool of_network = dynamic_cast<const std::system_error*>(&error) != nullptr;
    return of_network ? Outcome{ExitCode::peer_lost, error.what()} : others(error);
  };
}

// Each worker chose for its own machine. If only some chose NCCL, they would wait for the others.
void throw_if_backends_differ(const std::vector<Choice>& choices) {
  std::vector<std::string> by_nccl;
  std::vector<std::string> by_gloo;
  for (std::size_t rank = 0; rank < choices.size(); ++rank) {
    const bool nccl = choices[rank].backend == Backend::nccl;
    (nccl ? by_nccl : by_gloo).push_back(std::to_string(rank));
  }
  if (by_nccl.empty() || by_gloo.empty()) return;
  throw SharedError(ExitCode::user_error,
                    "the workers' backends differ: nccl on rank " + join(by_nccl) +
                        ", gloo on rank " + join(by_gloo) +
                        ". Choose backend gloo, or device cpu, for all of them");
}

// If all workers reach the store by a loopback address, they are all on its machine.
std::string choose_address(const Launch& launch, const std::vector<Hello>& hellos) {
  const std::string& own = hellos[static_cast<std::size_t>(launch.rank)].route;
  const bool all_local = std::all_of(hellos.begin(), hellos.end(),
                                     [](const Hello& hello) { return is_loopback(hello.route); });
  return is_loopback(own) && !all_local ? address_for_others(launch) : own;
}

// The sharing that the machines allow.
Sharing sharing_of(const std::vector<std::string>& machines) {
  std::map<std::string, std::size_t> workers;  // by machine
  std::size_t most = 0;
  for (const std::string& machine : machines) {
    if (!machine.empty()) most = std::max(most, ++workers[machine]);
  }
  if (most < 2) return Sharing::none;
  return most == machines.size() ? Sharing::all : Sharing::within_machines;
}

// The machine of each rank, as its smallest rank. A machine without a name has one rank.
std::vector<int> numbers_of(const std::vector<std::string>& machines) {
  std::vector<int> numbers;
  for (auto each = machines.begin(); each != machines.end(); ++each) {
    const auto first = each->empty() ? each : std::find(machines.begin(), each, *each);
    numbers.push_back(static_cast<int>(first - machines.begin()));
  }
  return numbers;
}

// The backend for GPUs if the choice is free.
Backend backend_for(const std::vector<std::string>& machines, bool network_for_gpus) {
  const bool one_machine = std::count(machines.begin(), machines.end(), machines.front()) ==
                           std::ssize(machines);  // which may have no name
  if (network_for_gpus || one_machine) return Backend::nccl;
  return sharing_of(machines) == Sharing::none ? Backend::gloo : Backend::nccl_within_machines;
}

}  // namespace

World::World(const Launch& launch, WorldOptions options)
    : launch_(launch),
      membership_(everyone(launch.world_size)),
      agreement_([this](const std::string& name,
                        std::string own) { return control_->gather(name, std::move(own)); },
                 options.explain),
      survivors_([this](const std::string& name,
                        std::string own) { return bytes_of_survivors(name, std::move(own)); },
                 options.explain),
      timeout_(options.timeout),
      timeout_setting_(options.timeout_setting) {
  if (launch.world_size == 1) {
    launch_.machines = {0};
    launch_.hosts = {host_name()};
    start_control(launch_.hosts, std::vector<Socket>(1), std::move(options));
    return;
  }
  allow_open_files(launch.world_size);
  rendezvous_ = std::make_unique<Rendezvous>(launch_, to_milliseconds(options.timeout),
                                             options.timeout_setting);
  if (rendezvous_->agents_meet_here()) launch_.elastic_run.clear();
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
  check_builds(*rendezvous_);
  const Agreement at_store([&](const std::string& name,
                               const std::string& own) { return rendezvous_->share(name, own); },
                           network_errors(options.explain));
  const std::vector<Hello> hellos = at_store.agree("address", [&] {
    return Hello{.host = host_name(),
                 .machine = host_identity(),
                 .route = route_address(launch_),
                 .token = random_name()};
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
  for (const Hello& hello : hellos) {
    launch_.hosts.push_back(hello.host);
    machines_.push_back(hello.machine);
  }
  launch_.machines = numbers_of(machines_);
  if (!launch_.knows_machine) find_place();
  choose_interface_for_nccl(launch_, address_);
  start_control(launch_.hosts, std::move(connections), std::move(options));
  // From here on the control plane gives up on peers, and gloo's look-ups wait for as long as they
  // live.
  rendezvous_->wait_for_ever();
}

void World::agree(const std::string& name, const std::function<void()>& stage) {
  agreement_.agree(name, stage);
}

std::vector<Outcome> World::attempt(const std::string& name, const std::function<void()>& stage) {
  return agreement_.attempt(name, stage);
}

std::vector<std::string> World::bytes_of_survivors(const std::string& name, std::string own) {
  std::vector<std::string> all;
  for (auto& bytes : control_->gather_of_survivors(name, std::move(own)))
    all.push_back(bytes ? std::move(*bytes) : to_cbor(Outcome{ExitCode::peer_lost, "lost"}));
  return all;
}

int World::speaker() const { return control_->farewell().speaker(); }

void World::leave_after_speaker() {
  if (launch_.rank != speaker()) control_->wait_until_left(speaker(), kWaitForSpeaker);
}

// For launchers that do not say who is on this machine.
void World::find_place() {
  const std::vector<int> ranks = ranks_of_machine();
  launch_.local_world_size = static_cast<int>(ranks.size());
  const auto own = std::find(ranks.begin(), ranks.end(), launch_.rank);
  launch_.local_rank = static_cast<int>(own - ranks.begin());
  launch_.knows_machine = true;
}

// The ranks of the workers that could share memory with this one, and its own.
std::vector<int> World::ranks_of_machine() const {
  const std::string& own = machines_[static_cast<std::size_t>(launch_.rank)];
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < machines_.size(); ++rank) {
    const auto each = static_cast<int>(rank);
    if (each == launch_.rank || (!own.empty() && machines_[rank] == own)) ranks.push_back(each);
  }
  return ranks;
}

// The communicator of this machine's workers; null for a worker alone. If it fails on one worker,
// no machine shares memory, so that all workers know what carries their tensors.
std::shared_ptr<Communicator> World::share_memory_here(DeviceChoice& choice) {
  const std::vector<int> ranks = ranks_of_machine();
  const auto note_problem = [&](const Outcome& outcome) {
    if (outcome.code != ExitCode::done && choice.sharing_problem.empty())
      choice.sharing_problem = outcome.message;
  };
  std::shared_ptr<Arena> own;
  const auto offers = attempt("offer memory", [&] {
    if (ranks.size() > 1) own = Mail::make_arena(ranks.size());
    return own ? own->address() : ArenaAddress();
  });
  for (const auto& offer : offers) note_problem(offer.outcome);
  std::size_t own_number = 0;
  std::vector<std::shared_ptr<Arena>> arenas;
  const auto opened = attempt("open memory", [&] {
    if (!choice.sharing_problem.empty()) return;
    for (const int rank : ranks) {
      if (rank == launch_.rank) own_number = arenas.size();
      const auto& offer = offers[static_cast<std::size_t>(rank)];
      arenas.push_back(rank == launch_.rank ? own : Arena::open(offer.value.value()));
    }
  });
  for (const Outcome& outcome : opened) note_problem(outcome);
  if (!choice.sharing_problem.empty()) choice.sharing = Sharing::none;
  if (!choice.sharing_problem.empty() || ranks.size() == 1) return nullptr;
  return share_memory(std::make_shared<Mail>(own_number, std::move(arenas)), ranks);
}

std::shared_ptr<Communicator> World::connect_by_gloo() {
  const GlooOptions options{
      .interfaces = launch_.interfaces, .address = address_, .timeout = kForever};
  return connect_gloo(rendezvous_->store(), launch_.rank, launch_.world_size, options);
}

std::shared_ptr<Communicator> World::communicator(DeviceChoice& choice) {
  if (launch_.world_size == 1) return make_single_worker();
  const std::vector<Choice> choices = gather(
      "backend",
      Choice{.backend = choice.backend,
             .may_share_memory = choice.may_share_memory,
             .gpu_network = !choice.by_network || has_network_for_gpus(environment_variable)});
  throw_if_backends_differ(choices);
  const bool all_may = std::all_of(choices.begin(), choices.end(),
                                   [](const Choice& each) { return each.may_share_memory; });
  if (all_may) choice.sharing = sharing_of(machines_);
  if (all_may && launch_.local_world_size > 1 &&
      machines_[static_cast<std::size_t>(launch_.rank)].empty())
    choice.sharing_problem = "/proc does not tell who is on this machine";
  std::shared_ptr<Communicator> local;
  if (choice.sharing != Sharing::none) local = share_memory_here(choice);
  if (choice.sharing == Sharing::all) return local;
  if (choice.backend == Backend::nccl && choice.by_network) {
    const bool everywhere = std::all_of(choices.begin(), choices.end(),
                                        [](const Choice& each) { return each.gpu_network; });
    choice.backend = backend_for(machines_, everywhere);
  }
  auto host = connect_by_gloo();
  if (local) return by_place(std::move(host), std::move(local), ranks_of_machine());
  return choice.device.is_cuda() ? connect_gpus(choice, std::move(host)) : host;
}

std::shared_ptr<Communicator> World::connect_gpus(const DeviceChoice& choice,
                                                  std::shared_ptr<Communicator> host) {
  use_cuda_device(choice.device.index());
  if (choice.backend == Backend::nccl) return connect_by_nccl("all", host);
  auto all = stage_cuda(std::move(host));
  if (choice.backend == Backend::gloo) return all;
  const std::vector<int> ranks = ranks_of_machine();
  if (ranks.size() == 1) return all;
  auto local = all->subgroup(ranks);  // for tensors on the CPU, to keep their order
  return by_place(std::move(all), connect_by_nccl(std::to_string(ranks.front()), local), ranks);
}

// Connects the workers of `host`; `name` distinguishes them from workers of other machines.
std::shared_ptr<Communicator> World::connect_by_nccl(const std::string& name,
                                                     const std::shared_ptr<Communicator>& host) {
  const auto on_error = [this](const std::string& message) {
    const auto known = gpu_error_of(message);
    fail(known ? Outcome{known->code, message + known->advice}
               : Outcome{ExitCode::peer_lost, message});
  };
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      "nccl of " + name, c10::intrusive_ptr<c10d::Store>::reclaim_copy(&rendezvous_->store()));
  return watch_connections([&] { return connect_nccl(*store, host, on_error); },
                           [this](const std::function<void()>& step) { connecting_gpus(step); });
}

// NCCL waits for ever for a worker that cannot connect, also within a stage of all workers. So this
// function makes the run fail.
void World::connecting_gpus(const std::function<void()>& step) {
  const auto too_late = [&] {
    fail({ExitCode::peer_lost,
          "NCCL has not connected the workers' GPUs after " + seconds_text(timeout_) + " (" +
              timeout_setting_ + ").\nNCCL_SOCKET_IFNAME, here '" +
              environment_variable("NCCL_SOCKET_IFNAME").value_or("") +
              "', names the network interfaces that reach the other machines, and "
              "NCCL_DEBUG=INFO shows what NCCL does"});
  };
  watch(timeout_, too_late, [&] {
    try {
      step();
    } catch (...) {
      fail(agreement_.outcome_of_error());
      throw;
    }
  });
}

void World::fail(const Outcome& outcome) {
  control_->fail_after_loss(
      {.code = outcome.code, .rank = launch_.rank, .lost = false, .message = outcome.message});
}

void World::compare_gpus(bool wanted) {
  if (launch_.world_size == 1) return;
  const auto own = [&] { return wanted ? cuda_device_ids() : std::vector<GpuId>(); };
  decent::compare_gpus(agree("gpus", own), launch_);
}

}  // namespace decent
