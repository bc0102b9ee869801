#include "decent/comm/shared_memory/mail.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <new>

#include "decent/core/error.h"

namespace decent {

// ---- contents of the arenas; all zeros is their initial state ----

using Counter = std::atomic<std::uint32_t>;
static_assert(Counter::is_always_lock_free && sizeof(Counter) == 4, "between processes, by futex");

struct Mail::Descriptor {
  MessageTag tag;
  std::int64_t block;   // offset in the sender's arena of the block that it lies in; -1: no bytes
  std::int64_t within;  // bytes from the begin of the block's memory
  std::int64_t bytes;
};

// A ring from one worker to another, in the receiver's arena. Numbers count without end.
struct alignas(128) Mail::Inbox {
  static constexpr std::uint32_t kInboxPlaces = 1024;

  Counter written;            // by the sender
  alignas(128) Counter read;  // by the receiver
  Counter sender_waits;       // for a place: set by the sender, cleared by the receiver
  alignas(128) Descriptor descriptors[kInboxPlaces];
};

struct alignas(128) Mail::Board {
  Counter doorbell;
  Counter waiting;  // threads of its worker
  Counter closed;
};

struct alignas(128) Mail::BlockHead {
  Counter readers;  // that are not done
};

namespace {

// How often a wait looks whether others are still there, in nanoseconds.
constexpr long kCheckIntervalNs = 100'000'000;

// Returns when `counter` is woken, is not `seen`, or after kCheckIntervalNs.
void futex_wait(Counter& counter, std::uint32_t seen) {
  const timespec most{.tv_sec = 0, .tv_nsec = kCheckIntervalNs};
  ::syscall(SYS_futex, &counter, FUTEX_WAIT, seen, &most, nullptr, 0);
}

void futex_wake_all(Counter& counter) {
  ::syscall(SYS_futex, &counter, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// `descriptor` is the process's pidfd, or closed if there is none.
bool has_ended(const Socket& descriptor, pid_t process) {
  if (!descriptor.open()) return ::kill(process, 0) != 0 && errno == ESRCH;
  pollfd entry{.fd = descriptor.descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

std::shared_ptr<Arena> Mail::make_arena(std::size_t workers) {
  auto arena = Arena::create();
  arena->grow(static_cast<std::int64_t>(sizeof(Board) + workers * sizeof(Inbox)));
  return arena;
}

Mail::Mail(std::size_t own, std::vector<std::shared_ptr<Arena>> arenas)
    : own_(own), arenas_(std::move(arenas)), processes_(arenas_.size()) {
  for (std::size_t worker = 0; worker < arenas_.size(); ++worker) {
    const pid_t process = arenas_[worker]->address().process;
    // There is no pidfd if the process has ended already, and before Linux 5.3.
    if (process != ::getpid())
      processes_[worker] = Socket(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  }
}

Mail::~Mail() { close(); }

Mail::Board& Mail::board(std::size_t worker) const {
  return *std::launder(reinterpret_cast<Board*>(arenas_[worker]->at(0)));
}

Mail::Inbox& Mail::inbox(std::size_t receiver, std::size_t sender) const {
  const auto offset = static_cast<std::int64_t>(sizeof(Board) + sender * sizeof(Inbox));
  return *std::launder(reinterpret_cast<Inbox*>(arenas_[receiver]->at(offset)));
}

Mail::BlockHead& Mail::head(std::size_t worker, std::int64_t block) const {
  return *std::launder(reinterpret_cast<BlockHead*>(arenas_[worker]->at(block)));
}

// ---- waiting ----

// A waiting thread counts itself in before its last look at the doorbell (inside futex_wait).
// ring() raises the doorbell before it looks for waiting threads. So one of the two sees the other.
void Mail::ring(std::size_t worker) const noexcept {
  Board& theirs = board(worker);
  theirs.doorbell.fetch_add(1, std::memory_order_seq_cst);
  if (theirs.waiting.load(std::memory_order_seq_cst) > 0) futex_wake_all(theirs.doorbell);
}

// Why there is nobody to wait for; null if there is.
const char* Mail::reason_to_give_up(std::span<const std::size_t> workers,
                                    std::span<const std::size_t> members,
                                    bool look_at_processes) const {
  if (closed_.load(std::memory_order_acquire)) return "this worker has left";
  const auto gone = [&](std::size_t worker) {
    return board(worker).closed.load(std::memory_order_acquire) != 0 ||
           (look_at_processes && has_ended(processes_[worker], arenas_[worker]->address().process));
  };
  if (std::any_of(workers.begin(), workers.end(), gone)) return "the other worker has left";
  if (!lost_ || !lost_->any()) return nullptr;
  LostWorkers::Ranks ranks;
  for (const std::size_t member : members) ranks.push_back(ranks_[member]);
  return lost_->any_of(ranks) ? "a worker is lost" : nullptr;
}

void Mail::go_on_without(std::shared_ptr<LostWorkers> lost, std::vector<int> ranks) {
  ranks_ = std::move(ranks);
  lost_ = std::move(lost);
  watch_.emplace(*lost_, ranks_, [this] { ring(own_); });
}

void Mail::wait(std::span<const std::size_t> for_workers, std::span<const std::size_t> members,
                const std::function<bool()>& ready) {
  Board& own = board(own_);
  for (bool first = true;; first = false) {
    const std::uint32_t seen = own.doorbell.load(std::memory_order_seq_cst);
    if (ready()) return;
    if (const char* why = reason_to_give_up(for_workers, members, !first)) {
      if (ready()) return;  // by the last message
      throw PeerLost(why);
    }
    own.waiting.fetch_add(1, std::memory_order_seq_cst);
    futex_wait(own.doorbell, seen);
    own.waiting.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void Mail::close() noexcept {
  closed_.store(true, std::memory_order_release);
  board(own_).closed.store(1, std::memory_order_release);
  for (std::size_t worker = 0; worker < arenas_.size(); ++worker) ring(worker);
}

// ---- descriptors ----

// False if the ring is full.
bool Mail::push(std::size_t to, const Descriptor& descriptor) {
  const std::lock_guard lock(mutex_);
  Inbox& ring = inbox(to, own_);
  const std::uint32_t written = ring.written.load(std::memory_order_relaxed);
  if (written - ring.read.load(std::memory_order_seq_cst) == Inbox::kInboxPlaces) {
    empty_inboxes();  // the other one may be waiting for a place, too
    return false;
  }
  ring.descriptors[written % Inbox::kInboxPlaces] = descriptor;
  ring.written.store(written + 1, std::memory_order_release);
  return true;
}

// Empties the rings from all workers, so that nobody waits for a place while this worker waits.
void Mail::empty_inboxes() {
  for (std::size_t worker = 0; worker < arenas_.size(); ++worker) empty_inbox(worker);
}

void Mail::empty_inbox(std::size_t from) {
  Inbox& inbox = this->inbox(own_, from);
  const std::uint32_t written = inbox.written.load(std::memory_order_acquire);
  std::uint32_t read = inbox.read.load(std::memory_order_relaxed);
  if (read == written) return;
  for (; read != written; ++read) {
    const Descriptor& descriptor = inbox.descriptors[read % Inbox::kInboxPlaces];
    arrived_[{from, descriptor.tag}].push_back(descriptor);
  }
  inbox.read.store(read, std::memory_order_seq_cst);
  if (inbox.sender_waits.exchange(0, std::memory_order_seq_cst) != 0) ring(from);
}

std::optional<Mail::Descriptor> Mail::take_arrived(std::size_t from, MessageTag tag) {
  const std::lock_guard lock(mutex_);
  empty_inboxes();
  const auto found = arrived_.find({from, tag});
  if (found == arrived_.end()) return std::nullopt;
  const Descriptor descriptor = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) arrived_.erase(found);
  return descriptor;
}

void Mail::send(const void* data, std::int64_t bytes, std::span<const std::size_t> to,
                MessageTag tag) {
  Descriptor descriptor{.tag = tag, .block = -1, .within = 0, .bytes = bytes};
  if (bytes > 0) {
    const std::lock_guard lock(mutex_);
    const auto found = block_of(data);
    auto& [block, own] = *found;
    descriptor.block = block;
    descriptor.within = arenas_[own_]->offset_of(data) - block - std::int64_t{sizeof(BlockHead)};
    own.readers.insert(to.begin(), to.end());
    head(own_, block)
        .readers.fetch_add(static_cast<std::uint32_t>(to.size()), std::memory_order_relaxed);
  }
  for (const std::size_t worker : to) {
    wait({&worker, 1}, {&worker, 1}, [&] {
      if (push(worker, descriptor)) return true;
      inbox(worker, own_).sender_waits.store(1, std::memory_order_seq_cst);
      return push(worker, descriptor);  // the reader may have made room before it saw the flag
    });
    ring(worker);
  }
}

Letter Mail::receive(std::size_t from, MessageTag tag, std::span<const std::size_t> members) {
  std::optional<Descriptor> descriptor;
  wait({&from, 1}, members, [&] {
    descriptor = take_arrived(from, tag);
    return descriptor.has_value();
  });
  Letter letter;
  letter.bytes_ = descriptor->bytes;
  if (descriptor->bytes == 0) return letter;
  letter.mail_ = shared_from_this();
  letter.from_ = from;
  letter.block_ = descriptor->block;
  letter.data_ =
      arenas_[from]->at(descriptor->block + std::int64_t{sizeof(BlockHead)} + descriptor->within);
  return letter;
}

Letter::~Letter() {
  if (mail_) mail_->release(from_, block_);
}

// The sender may be waiting for the last reader.
void Mail::release(std::size_t from, std::int64_t block) const noexcept {
  if (head(from, block).readers.fetch_sub(1, std::memory_order_acq_rel) == 1) ring(from);
}

// ---- blocks ----

bool Mail::unread(std::int64_t block) const {
  return head(own_, block).readers.load(std::memory_order_acquire) > 0;
}

// The smallest free block that is large enough, but not far too large; -1 if there is none.
std::int64_t Mail::find_free(std::int64_t bytes) const {
  constexpr std::int64_t kSmallBlockBytes = 1 << 16;
  std::int64_t best = -1;
  std::int64_t best_capacity = std::max(2 * bytes, kSmallBlockBytes) + 1;
  for (const auto& [block, own] : blocks_) {
    if (own.given_out || own.capacity < bytes || own.capacity >= best_capacity || unread(block))
      continue;
    best = block;
    best_capacity = own.capacity;
  }
  return best;
}

Block Mail::take(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::int64_t block = find_free(bytes);
  if (block < 0) {
    constexpr std::int64_t kHeadBytes = sizeof(BlockHead);
    block = arenas_[own_]->grow(kHeadBytes + bytes);
    const std::int64_t pages = (kHeadBytes + bytes + Arena::kPage - 1) / Arena::kPage;
    blocks_[block].capacity = pages * Arena::kPage - kHeadBytes;
  }
  blocks_[block].given_out = true;
  blocks_[block].readers.clear();
  return {shared_from_this(), block};
}

std::byte* Block::data() const {
  return mail_->arenas_[mail_->own_]->at(offset_ + std::int64_t{sizeof(Mail::BlockHead)});
}

Block::~Block() {
  if (mail_) mail_->give_back(offset_);
}

void Mail::give_back(std::int64_t block) {
  const std::lock_guard lock(mutex_);
  blocks_[block].given_out = false;
}

Mail::Blocks::iterator Mail::block_of(const void* data) {
  const auto after = blocks_.upper_bound(arenas_[own_]->offset_of(data));
  if (after == blocks_.begin()) throw std::logic_error("a message outside of all blocks");
  return std::prev(after);
}

bool Mail::holds(const void* data) const { return arenas_[own_]->offset_of(data) >= 0; }

void Mail::wait_until_read(const void* data) {
  std::set<std::size_t> readers;
  std::int64_t block = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = block_of(data);
    block = found->first;
    readers = found->second.readers;
  }
  const std::vector<std::size_t> list(readers.begin(), readers.end());
  // After a loss, others may never read what they gave up.
  const auto is_given_up = [this] { return lost_ && lost_->any(); };
  wait(list, list, [&] { return !unread(block) || is_given_up(); });
  const std::lock_guard lock(mutex_);
  if (unread(block)) throw GivenUp("a worker is lost");
  blocks_[block].readers.clear();
}

}  // namespace decent
