#include "decent/comm/rendezvous.h"

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
using StorePointer = c10::intrusive_ptr<c10d::Store>;

// The key under which the first worker that gives up on others stores a GivingUp.
const std::string kGivenUp = "given up";
// How long the store's host waits for others to read an answer before it leaves, which closes the
// store.
constexpr auto kLeaveTimeout = 10s;
// How often a waiting worker checks whether the workers that it waits for have started anew.
constexpr auto kLookForLost = 500ms;
// How often workers have waited in vain for worker 0: those that begin to wait later use other
// keys.
const std::string kInVain = "waited in vain";

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

// Whether the agents of torchrun's static rendezvous told each other their workers at this store.
bool agents_met_at(c10d::Store& store, const Launch& launch) {
  return !launch.elastic_run.empty() &&
         store.check({launch.elastic_run + "/torchelastic/role_info/0"});
}

// What c10d throws means that the store is gone. `stage`: what the worker was at.
template <typename Work>
auto at_store(const Launch& launch, const std::string& stage, const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerLost("the store at " + store_text(launch) + ", which " +
                   (launch.agent_store ? "torchrun" : "worker 0") + " hosts, was lost (" + stage +
                   "): " + first_line(error));
  }
}

}  // namespace

Rendezvous::Rendezvous(const Launch& launch, std::chrono::milliseconds patience,
                       std::string patience_setting)
    : launch_(launch),
      patience_(patience),
      patience_setting_(std::move(patience_setting)),
      root_(connect_store(launch, patience)) {
  deadline_ = Clock::now() + patience_;
  at_store(launch_, "joining", [&] {
    agents_meet_here_ = agents_met_at(*root_, launch_);
    // Elastic launchers start the same ranks anew in a larger world, which needs other keys.
    root_ = keys_under(launch_.store_prefix + "/decent/" + std::to_string(launch_.world_size) +
                       "-workers/");
    join();
  });
}

// Until worker 0 has told this one the number of their program, it shares keys only with others
// that wait as well.
void Rendezvous::join() {
  store_ = keys_under("waiting-" + std::to_string(root_->add(kInVain, 0)));
  roll_.emplace(root_, launch_);
  if (!wait_until([&] { return roll_->program().has_value(); }, *deadline_)) report_absent();
  store_ = keys_under("program-" + std::to_string(*roll_->program()));
}

Rendezvous::StorePointer Rendezvous::keys_under(const std::string& prefix) const {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, root_);
}

void Rendezvous::set(const std::string& key, const std::string& text) {
  store_->set(key, to_bytes(text));
}

std::string Rendezvous::get(const std::string& key) { return to_text(store_->get(key)); }

void Rendezvous::wait_for_ever() { root_->setTimeout(std::chrono::milliseconds(24h)); }

std::vector<std::string> Rendezvous::share(const std::string& name, const std::string& own) {
  return at_store(launch_, name, [&] { return share_unguarded(name, own); });
}

std::vector<std::string> Rendezvous::share_unguarded(const std::string& name,
                                                     const std::string& own) {
  const auto deadline = std::exchange(deadline_, std::nullopt).value_or(Clock::now() + patience_);
  const std::vector<std::string> keys = rank_keys(name, launch_.world_size);
  set(keys[static_cast<std::size_t>(launch_.rank)], own);
  if (!wait_until([&] { return store_->check(keys); }, deadline)) report_missing(keys);
  std::vector<std::string> all;
  for (const std::string& key : keys) all.push_back(get(key));
  store_->add(name + "/read", 1);
  if (launch_.hosts_store()) wait_for_count(*store_, name + "/read", launch_.world_size);
  return all;
}

// Whether what this worker waits for came in time. Throws if another worker has given up or is
// lost.
bool Rendezvous::wait_until(const std::function<bool()>& come, Clock::time_point deadline) {
  auto look = Clock::now();
  auto pause = 1ms;
  while (!come()) {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    if (store_->check({kGivenUp})) give_up();
    if (!roll_->complete() || now >= look) {
      check_nobody_is_lost();
      look = now + kLookForLost;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
  return true;
}

// A worker that died here, and whose script or launcher has started the next process, never comes.
void Rendezvous::check_nobody_is_lost() {
  const std::vector<int> lost = roll_->lost();
  if (lost.empty()) return;
  // Those that worker 0 has left behind tell each other, but not those that it is about to admit.
  if (!roll_->program()) store_ = keys_under("left-behind-" + std::to_string(roll_->answered()));
  tell_all_to_give_up("lost worker " + ranks_text(lost) + " of " +
                          std::to_string(launch_.world_size) +
                          ": it ended before all had met, and its script or launcher has gone on",
                      launch_.rank);
}

std::vector<int> Rendezvous::missing_of(const std::vector<std::string>& keys) {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    if (!store_->check({keys[rank]})) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

std::string Rendezvous::not_shown_up(const std::vector<int>& ranks) const {
  return "worker " + ranks_text(ranks) + " of " + std::to_string(launch_.world_size) +
         " has not shown up within " + seconds_text(patience_) + " (" + patience_setting_ + ")" +
         why_that_many(launch_);
}

// No worker 0 has admitted this worker.
void Rendezvous::report_absent() {
  root_->add(kInVain, 1);
  tell_all_to_give_up(not_shown_up(roll_->absent()), launch_.rank);
}

void Rendezvous::report_missing(const std::vector<std::string>& keys) {
  const std::vector<int> missing = missing_of(keys);
  int reporter = 0;  // the lowest rank that is there
  while (std::find(missing.begin(), missing.end(), reporter) != missing.end()) ++reporter;
  tell_all_to_give_up(not_shown_up(missing), reporter);
}

// Several workers may give up at the same moment; the first one's words count.
void Rendezvous::tell_all_to_give_up(const std::string& message, int reporter) {
  const std::string own = to_cbor(GivingUp{.reporter = reporter, .message = message});
  store_->compareSet(kGivenUp, std::vector<std::uint8_t>(), to_bytes(own));
  give_up();
}

// Whoever gives up has the same message, and one worker tells it to the user.
void Rendezvous::give_up() {
  const auto given_up = from_cbor<GivingUp>(get(kGivenUp));
  // Workers that still wait must be able to read it before the store is gone.
  if (launch_.hosts_store()) std::this_thread::sleep_for(500ms);
  if (given_up.reporter == launch_.rank) throw PeerLost(given_up.message);
  throw SharedError(ExitCode::peer_lost, given_up.message);
}

}  // namespace decent
