#include "decent/comm/roll_call.h"

#include <utility>

#include "decent/comm/cbor.h"
#include "decent/core/error.h"
#include "decent/core/host.h"

namespace decent {
namespace {

// The number of the last program that a worker 0 has called.
const std::string kCall = "call";
const std::string kPrograms = "programs";
// The answer to a worker whose program worker 0 has left behind.
constexpr std::int64_t kNever = 0;

// The last process that came as a rank.
struct Arrival {
  std::string process;
  std::int64_t start = 0;  // which program of its script it is
  std::int64_t call = 0;   // the call that it has seen; 0: none
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Arrival, process, start, call)

std::string arrival_key(int rank) { return "arrivals/" + std::to_string(rank); }

std::string answer_key(const std::string& process) { return "answers/" + process; }

template <typename T>
void put(c10d::Store& store, const std::string& key, const T& value) {
  const std::string bytes = to_cbor(value);
  store.set(key, std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
}

// nullopt if the key was never set. No key of this file is ever removed.
template <typename T>
std::optional<T> look_up(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) return std::nullopt;
  const std::vector<std::uint8_t> bytes = store.get(key);
  return from_cbor<T>(std::string(bytes.begin(), bytes.end()));
}

}  // namespace

RollCall::RollCall(c10::intrusive_ptr<c10d::Store> store, const Launch& launch)
    : store_(std::move(store)),
      rank_(launch.rank),
      workers_(launch.world_size),
      process_(random_name()),
      start_(store_->add("starts/" + std::to_string(rank_) + "/" + launch.script, 1)),
      admitted_(static_cast<std::size_t>(launch.world_size)) {
  if (rank_ == 0) {
    program_ = store_->add(kPrograms, 1);
    put(*store_, kCall, *program_);
  } else {
    arrive(last_call());
  }
}

std::int64_t RollCall::last_call() { return look_up<std::int64_t>(*store_, kCall).value_or(0); }

void RollCall::arrive(std::int64_t call) {
  put(*store_, arrival_key(rank_), Arrival{.process = process_, .start = start_, .call = call});
  answered_ = call;
}

std::optional<std::int64_t> RollCall::program() {
  if (!program_ && !left_behind_) {
    read_answer();
    if (!program_ && !left_behind_) answer_new_call();
  }
  return program_;
}

void RollCall::read_answer() {
  const auto answer = look_up<std::int64_t>(*store_, answer_key(process_));
  if (!answer) return;
  left_behind_ = *answer == kNever;
  if (!left_behind_) program_ = answer;
}

// An older process of this rank that is still there must not come back in between.
void RollCall::answer_new_call() {
  const std::int64_t call = last_call();
  if (call == answered_) return;
  const auto newest = look_up<Arrival>(*store_, arrival_key(rank_));
  if (newest && newest->process != process_)
    throw PeerLost("worker " + std::to_string(rank_) + " of " + std::to_string(workers_) +
                   " was started again, so this older process of it ends");
  arrive(call);
}

std::vector<int> RollCall::lost() {
  if (left_behind_ || (program_ && last_call() != *program_)) return {0};
  std::vector<int> lost;
  for (int rank = 1; rank_ == 0 && rank < workers_; ++rank) {
    if (!admit(rank)) lost.push_back(rank);
  }
  return lost;
}

// Whether the rank may still come or has come. Once a process is admitted there is no way back: it
// may have told the others its address already. A process that is at a later program of its script
// is not answered, and comes to a later call.
bool RollCall::admit(int rank) {
  const auto arrival = look_up<Arrival>(*store_, arrival_key(rank));
  std::string& admitted = admitted_[static_cast<std::size_t>(rank)];
  if (!arrival || arrival->call != *program_ || arrival->process == admitted) return true;
  if (!admitted.empty() || arrival->start > start_) return false;
  const bool behind = arrival->start < start_;
  put(*store_, answer_key(arrival->process), behind ? kNever : *program_);
  if (!behind) admitted = arrival->process;
  return true;
}

bool RollCall::complete() const {
  if (!program_) return false;
  for (int rank = 1; rank_ == 0 && rank < workers_; ++rank) {
    if (admitted_[static_cast<std::size_t>(rank)].empty()) return false;
  }
  return true;
}

std::vector<int> RollCall::absent() {
  std::vector<int> absent = {0};
  for (int rank = 1; rank < workers_; ++rank) {
    if (!store_->check({arrival_key(rank)})) absent.push_back(rank);
  }
  return absent;
}

}  // namespace decent
