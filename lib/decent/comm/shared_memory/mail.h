#pragma once
// Messages between the workers of one machine. A message stays in the memory of the worker that
// sends it. Its readers read it there, and say when they are done.
//
// Every worker has an arena, which all others map. It holds
//
//     a doorbell   a counter that the others raise, and ring (futex), when there is something new
//     inboxes      from each other worker a ring of descriptors: which message, and where it lies
//     blocks       memory of messages, with the number of readers that are not done with it
//
// An arena holds counters and no locks, so a worker that dies leaves nobody waiting for an unlock.
// A wait wakes every 0.1 s to check that the worker it waits for is still there.

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "decent/comm/lost_workers.h"
#include "decent/comm/shared_memory/arena.h"

namespace decent {

/// Messages of one tag from one worker come in the order in which they were sent.
struct MessageTag {
  std::uint64_t group = 0;
  std::uint64_t number = 0;
  auto operator<=>(const MessageTag&) const = default;
};

class Mail;

/// Memory of this worker for messages. After the object is destroyed, the memory is reused once its
/// readers are done.
class Block {
 public:
  Block() = default;
  Block(std::shared_ptr<Mail> mail, std::int64_t offset)
      : mail_(std::move(mail)), offset_(offset) {}
  Block(Block&& other) = default;
  Block& operator=(Block&& other) = delete;
  ~Block();

  /// Aligned to 128 bytes.
  std::byte* data() const;

 private:
  std::shared_ptr<Mail> mail_;
  std::int64_t offset_ = 0;
};

/// A message of another worker. It may be read (and written, if sender and reader agreed on that)
/// until the object is destroyed, which tells the sender.
class Letter {
 public:
  Letter() = default;
  Letter(Letter&& other) = default;
  Letter& operator=(Letter&& other) = delete;
  ~Letter();

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  friend class Mail;

  std::shared_ptr<Mail> mail_ = nullptr;
  std::size_t from_ = 0;
  std::int64_t block_ = 0;  // offset in the sender's arena
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// Any thread may call all methods.
class Mail : public std::enable_shared_from_this<Mail> {
 public:
  /// The arena of one of `workers` workers.
  static std::shared_ptr<Arena> make_arena(std::size_t workers);

  /// `arenas`: one of each worker, in the same order everywhere; arenas[own] is this worker's.
  Mail(std::size_t own, std::vector<std::shared_ptr<Arena>> arenas);
  ~Mail();

  std::size_t own() const { return own_; }

  /// Memory for a message; no earlier reader still uses it. Throws UserError as Arena::grow does.
  Block take(std::int64_t bytes);
  /// Whether `data` lies in this worker's arena.
  bool holds(const void* data) const;

  /// Sends `bytes` bytes at `data`, which lies in a block of this worker. Nobody may write there
  /// until all readers are done. Waits only if a reader has 1024 unread messages of this worker.
  /// Throws PeerLost if a worker is gone.
  void send(const void* data, std::int64_t bytes, std::span<const std::size_t> to, MessageTag tag);
  /// A message without bytes.
  void signal(std::span<const std::size_t> to, MessageTag tag) { send(nullptr, 0, to, tag); }

  /// Waits for the next message of that worker and tag. Throws PeerLost if the worker is gone and
  /// has not sent it, or if one of `members`, who take part in the same operation, is given up.
  Letter receive(std::size_t from, MessageTag tag, std::span<const std::size_t> members);
  Letter receive(std::size_t from, MessageTag tag) { return receive(from, tag, {&from, 1}); }

  /// Waits until all readers of the block that `data` lies in are done. Throws PeerLost if one
  /// reader has left while another is not done: workers agree before they leave. Throws GivenUp
  /// if the block is not read and a worker of the run is lost.
  void wait_until_read(const void* data);

  /// From now on waits for a worker that is lost end. `ranks`: by worker, its rank in the run.
  void go_on_without(std::shared_ptr<LostWorkers> lost, std::vector<int> ranks);
  /// Null before.
  LostWorkers* lost() const { return lost_.get(); }

  /// Tells the others that this worker sends nothing more. Their waits for it throw, and so do its
  /// own.
  void close() noexcept;

 private:
  friend class Block;
  friend class Letter;

  struct Descriptor;
  struct Inbox;
  struct Board;
  struct BlockHead;
  struct OwnBlock {
    std::int64_t capacity = 0;  // bytes of messages
    bool given_out = false;
    std::set<std::size_t> readers = {};  // receivers of its messages
  };
  using Blocks = std::map<std::int64_t, OwnBlock>;  // by offset in the own arena
  using Key = std::pair<std::size_t, MessageTag>;   // sender, tag

  Board& board(std::size_t worker) const;
  Inbox& inbox(std::size_t receiver, std::size_t sender) const;
  BlockHead& head(std::size_t worker, std::int64_t block) const;
  bool unread(std::int64_t block) const;

  void ring(std::size_t worker) const noexcept;
  void wait(std::span<const std::size_t> for_workers, std::span<const std::size_t> members,
            const std::function<bool()>& ready);
  const char* reason_to_give_up(std::span<const std::size_t> workers,
                                std::span<const std::size_t> members, bool look_at_processes) const;

  bool push(std::size_t to, const Descriptor& descriptor);
  std::optional<Descriptor> take_arrived(std::size_t from, MessageTag tag);
  void empty_inboxes();
  void empty_inbox(std::size_t from);

  std::int64_t find_free(std::int64_t bytes) const;
  Blocks::iterator block_of(const void* data);
  void give_back(std::int64_t block);
  void release(std::size_t from, std::int64_t block) const noexcept;

  std::size_t own_;
  std::vector<std::shared_ptr<Arena>> arenas_;
  std::vector<Socket> processes_;  // pidfd of each worker that is another process
  std::atomic<bool> closed_ = false;
  std::shared_ptr<LostWorkers> lost_;
  std::vector<int> ranks_;  // by worker
  std::optional<LostWorkers::Watch> watch_;

  mutable std::mutex mutex_;  // guards what follows, and this worker's ends of the rings
  Blocks blocks_;
  std::map<Key, std::deque<Descriptor>> arrived_;
};

}  // namespace decent
