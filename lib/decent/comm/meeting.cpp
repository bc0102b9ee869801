#include "decent/comm/meeting.h"

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "decent/comm/address.h"
#include "decent/comm/cbor.h"
#include "decent/comm/group_text.h"
#include "decent/comm/socket.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The key under which the first worker that gives up on others stores a GivingUp.
const std::string kGivenUp = "given up";
// How long the store's host waits for others to read an answer before it leaves, which closes the
// store.
constexpr auto kLeaveTimeout = 10s;
// How often a waiting worker checks whether the workers that it waits for have started anew.
constexpr auto kLookAtStarts = 500ms;

// Which worker tells the user that others do not come, and its message.
struct GivingUp {
  int reporter = 0;
  std::string message;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GivingUp, reporter, message)

// c10d writes its errors to stderr, with frames of C++, before it throws them.
class WithoutErrorsOfC10d {
 public:
  WithoutErrorsOfC10d() {
    if (FLAGS_caffe2_log_level == kErrors) FLAGS_caffe2_log_level = kErrors + 1;
  }
  ~WithoutErrorsOfC10d() { FLAGS_caffe2_log_level = before_; }
  WithoutErrorsOfC10d(const WithoutErrorsOfC10d&) = delete;
  WithoutErrorsOfC10d& operator=(const WithoutErrorsOfC10d&) = delete;

 private:
  static constexpr int kErrors = 2;  // TORCH_CPP_LOG_LEVEL=ERROR
  const int before_ = FLAGS_caffe2_log_level;
};

std::string reason_of_store(const std::exception& error, const Launch& launch) {
  const std::string text = first_line(error);
  if (text.find("ddress already in use") != std::string::npos)
    return "another program uses this port. MASTER_PORT chooses another one";
  if (launch.hosts_store()) return text + ". MASTER_PORT chooses another port";
  constexpr std::array kOfOthers = {"validate", "Connection reset", "Broken pipe", "Ping failed",
                                    "no answer"};
  const bool answers = std::any_of(kOfOthers.begin(), kOfOthers.end(), [&](const char* words) {
    return text.find(words) != std::string::npos;
  });
  return text + (answers ? ". What answers there is perhaps another program: MASTER_PORT chooses "
                           "another port"
                         : "");
}

std::string store_text(const Launch& launch) {
  return store_address(launch) + ":" + std::to_string(launch.master_port);
}

using StorePointer = c10::intrusive_ptr<c10d::Store>;

// c10d itself would wait for ever for an answer from whatever program listens there.
StorePointer made_in_time(const std::function<StorePointer()>& make,
                          std::chrono::milliseconds patience) {
  std::packaged_task<StorePointer()> task(make);
  std::future<StorePointer> made = task.get_future();
  std::thread(std::move(task)).detach();
  if (made.wait_for(patience + 1s) == std::future_status::timeout)
    throw std::runtime_error("no answer within " + seconds_text(patience));
  return made.get();
}

StorePointer connect_store(const Launch& launch, std::chrono::milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch.master_port);
  options.isServer = launch.hosts_store();
  options.numWorkers = static_cast<std::size_t>(launch.world_size);
  options.waitWorkers = false;
  options.timeout = patience;
  const std::string address = store_address(launch);
  const WithoutErrorsOfC10d quiet;
  try {
    // By default the store listens on all interfaces.
    if (launch.store_listener >= 0)
      options.masterListenFd = launch.store_listener;
    else if (options.isServer && launch.one_machine())
      options.masterListenFd = listen_on(address, launch.master_port).release();
    return made_in_time(
        [address, options] { return c10::make_intrusive<c10d::TCPStore>(address, options); },
        patience);
  } catch (const std::exception& error) {
    throw PeerLost("worker " + std::to_string(launch.rank) + " cannot " +
                   (launch.hosts_store() ? "host" : "reach") + " the store at " +
                   store_text(launch) + ": " + reason_of_store(error, launch));
  }
}

std::vector<std::uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::string to_text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::string> rank_keys(const std::string& name, int workers) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < workers; ++rank) keys.push_back(name + "/" + std::to_string(rank));
  return keys;
}

// Users may have forgotten who set the variable, except under launchers that start all workers.
std::string why_that_many(const Launch& launch) {
  if (launch.size_variable.empty() || launch.torchrun || launch.supervisor >= 0) return "";
  return "; " + launch.size_variable +
         " says how many there are. Start that many, or a single worker with env -u " +
         launch.sign_variable + " decent-train ..";
}

// For the store's host, which must not leave while others still read from the store.
void wait_for_count(c10d::Store& store, const std::string& key, int count) {
  const auto deadline = Clock::now() + kLeaveTimeout;
  while (store.add(key, 0) < count && Clock::now() < deadline) {
    std::this_thread::sleep_for(2ms);
  }
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  for (int rank : ranks) texts.push_back(std::to_string(rank));
  return join(texts);
}

}  // namespace

Meeting::Meeting(const Launch& launch, std::chrono::milliseconds patience,
                 std::string patience_setting)
    : launch_(launch),
      patience_(patience),
      patience_setting_(std::move(patience_setting)),
      root_(connect_store(launch, patience)) {
  // Elastic launchers start the same ranks anew in a larger world, which needs other keys.
  const std::string prefix =
      launch.store_prefix + "/decent/" + std::to_string(launch.world_size) + "-workers/";
  root_ = c10::make_intrusive<c10d::PrefixStore>(prefix, root_);
  try {
    start_ = root_->add(starts_key(launch.rank), 1);
  } catch (const std::exception& error) {
    throw PeerLost("the store at " + store_text(launch) + " was lost: " + first_line(error));
  }
  store_ = c10::make_intrusive<c10d::PrefixStore>("program-" + std::to_string(start_), root_);
}

std::string Meeting::starts_key(int rank) const { return "starts/" + std::to_string(rank); }

void Meeting::set(const std::string& key, const std::string& text) {
  store_->set(key, to_bytes(text));
}

std::string Meeting::get(const std::string& key) { return to_text(store_->get(key)); }

void Meeting::wait_for_ever() { root_->setTimeout(std::chrono::milliseconds(24h)); }

std::vector<std::string> Meeting::share(const std::string& name, const std::string& own) {
  try {
    return share_unguarded(name, own);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerLost("the store at " + store_text(launch_) + ", which " +
                   (launch_.agent_store ? "torchrun" : "worker 0") + " hosts, was lost (" + name +
                   "): " + first_line(error));
  }
}

std::vector<std::string> Meeting::share_unguarded(const std::string& name, const std::string& own) {
  const std::vector<std::string> keys = rank_keys(name, launch_.world_size);
  set(keys[static_cast<std::size_t>(launch_.rank)], own);
  if (!wait_for_keys(keys)) report_missing(keys);
  std::vector<std::string> all;
  for (const std::string& key : keys) all.push_back(get(key));
  store_->add(name + "/read", 1);
  if (launch_.hosts_store()) wait_for_count(*store_, name + "/read", launch_.world_size);
  return all;
}

// Whether all keys were set in time. Throws if another worker has given up.
bool Meeting::wait_for_keys(const std::vector<std::string>& keys) {
  const auto deadline = Clock::now() + patience_;
  auto look = Clock::now() + kLookAtStarts;
  auto pause = 1ms;
  while (!store_->check(keys)) {
    if (Clock::now() >= deadline) return false;
    if (store_->check({kGivenUp})) give_up();
    if (Clock::now() >= look) {
      check_others_still_wait(keys);
      look = Clock::now() + kLookAtStarts;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
  return true;
}

std::vector<int> Meeting::missing_of(const std::vector<std::string>& keys) {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    if (!store_->check({keys[rank]})) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

// A worker that died here and whose script went on to the next program will never come.
void Meeting::check_others_still_wait(const std::vector<std::string>& keys) {
  std::vector<int> gone;
  for (int rank : missing_of(keys)) {
    if (root_->add(starts_key(rank), 0) > start_) gone.push_back(rank);
  }
  if (gone.empty()) return;
  tell_all_to_give_up("lost worker " + ranks_text(gone) + " of " +
                          std::to_string(launch_.world_size) +
                          ": it ended before all had met, and its script has gone on",
                      launch_.rank);
  give_up();
}

void Meeting::report_missing(const std::vector<std::string>& keys) {
  const std::vector<int> missing = missing_of(keys);
  int reporter = 0;  // the lowest rank that is there
  while (std::find(missing.begin(), missing.end(), reporter) != missing.end()) ++reporter;
  tell_all_to_give_up("worker " + ranks_text(missing) + " of " +
                          std::to_string(launch_.world_size) + " has not shown up within " +
                          seconds_text(patience_) + " (" + patience_setting_ + ")" +
                          why_that_many(launch_),
                      reporter);
  give_up();
}

// Several workers may give up at the same moment; the first one's words count.
void Meeting::tell_all_to_give_up(const std::string& message, int reporter) {
  if (store_->add(kGivenUp + "/count", 1) != 1) return;
  set(kGivenUp, to_cbor(GivingUp{.reporter = reporter, .message = message}));
}

// Whoever gives up has the same message, and one worker tells it to the user.
void Meeting::give_up() {
  const auto given_up = from_cbor<GivingUp>(get(kGivenUp));
  // Workers that still wait must be able to read it before the store is gone.
  if (launch_.hosts_store()) std::this_thread::sleep_for(500ms);
  if (given_up.reporter == launch_.rank) throw PeerLost(given_up.message);
  throw SharedError(ExitCode::peer_lost, given_up.message);
}

}  // namespace decent
