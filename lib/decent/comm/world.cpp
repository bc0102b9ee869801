#include "decent/comm/world.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

#include "decent/comm/gloo.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

// Peers may need that long to load a large model from a slow disk, or to write one to it.
constexpr auto kStageTimeout = 600s;
// How long the store's host waits for others to read the last answer before it leaves and takes the
// store along.
constexpr auto kLeaveTimeout = 10s;

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

c10::intrusive_ptr<c10d::Store> connect_store(const Launch& launch) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch.master_port);
  options.isServer = launch.hosts_store();
  options.numWorkers = static_cast<std::size_t>(launch.world_size);
  options.waitWorkers = false;
  options.timeout = kStageTimeout;
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

std::string missing_workers(c10d::Store& store, const std::vector<std::string>& keys) {
  std::vector<std::string> missing;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    if (!store.check({keys[rank]})) missing.push_back(std::to_string(rank));
  }
  return join(missing);
}

// For the store's host, which must not take it along while others still read from it.
void wait_for_count(c10d::Store& store, const std::string& key, int count) {
  const auto deadline = std::chrono::steady_clock::now() + kLeaveTimeout;
  while (store.add(key, 0) < count && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(2ms);
  }
}

}  // namespace

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

World::World(const Launch& launch) : launch_(launch) {
  if (launch.world_size == 1) return;
  auto root = connect_store(launch);
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>(launch.store_prefix + "/decent", root);
  stores_ = std::make_unique<Stores>(Stores{std::move(root), std::move(prefixed)});
}

World::~World() = default;
World::World(World&&) noexcept = default;

std::vector<Outcome> World::share(const std::string& name, const Outcome& own) {
  if (!stores_) return {own};
  c10d::Store& store = *stores_->store;
  std::vector<std::string> keys;
  for (int rank = 0; rank < launch_.world_size; ++rank)
    keys.push_back(name + "/" + std::to_string(rank));
  std::vector<Outcome> outcomes;
  try {
    store.set(keys[static_cast<std::size_t>(launch_.rank)], to_bytes(encode(own)));
    store.wait(keys, kStageTimeout);
    for (const std::string& key : keys) outcomes.push_back(decode(store.get(key)));
    store.add(name + "/read", 1);
  } catch (const std::exception& error) {
    std::string missing;
    try {
      missing = missing_workers(store, keys);
    } catch (const std::exception&) {
      throw PeerLost("the store at " + launch_.master_addr + " was lost (" + name +
                     "): " + first_line(error));
    }
    throw PeerLost(name + ": no word from worker " + missing + " within " +
                   std::to_string(kStageTimeout.count()) + " s");
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

std::shared_ptr<Communicator> World::communicator() {
  if (!stores_) return make_single_worker();
  const GlooOptions options{.interfaces = launch_.interfaces, .loopback = launch_.one_machine()};
  return connect_gloo(*stores_->store, launch_.rank, launch_.world_size, options);
}

}  // namespace decent
