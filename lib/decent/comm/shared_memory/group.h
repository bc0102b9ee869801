#pragma once
// Operations of a group of workers that share memory, as blocking calls.
//
// Collective ones are numbered: all members give the same number to the same call, and a call waits
// for nothing but the same call of the others. So a group needs one thread, whatever other groups
// do.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/comm/shared_memory/mail.h"

namespace decent {

/// A sum over a group, which lies in the memory of its members: each has added up its share.
class SharedSum {
 public:
  SharedSum() = default;
  /// `letters` come from the members that have added up `parts`, and keep the parts readable.
  SharedSum(std::vector<Letter> letters, std::vector<ReceivedPart> parts)
      : letters_(std::move(letters)), parts_(std::move(parts)) {}

  const std::vector<ReceivedPart>& parts() const { return parts_; }

 private:
  std::vector<Letter> letters_;
  std::vector<ReceivedPart> parts_;
};

/// Any thread. All methods throw PeerLost if a member is gone.
class SharedGroup {
 public:
  /// `workers` are the members by their numbers in `mail`. `id` is the same for all members, and
  /// different for each group.
  SharedGroup(std::shared_ptr<Mail> mail, std::vector<std::size_t> workers, std::uint64_t id);

  int own() const { return own_; }
  int size() const { return static_cast<int>(workers_.size()); }
  const std::vector<std::size_t>& workers() const { return workers_; }
  std::uint64_t id() const { return id_; }
  Mail& mail() const { return *mail_; }

  /// Sends `tensor` to `peer` as the message with this tag. Copies it first, unless it lies in a
  /// block of the mail.
  void send(const at::Tensor& tensor, int peer, int tag);
  Letter receive(int peer, int tag);

  /// The first half of a sum, which does not wait: tells the others where `own`, in a block of the
  /// mail, lies.
  void offer(const at::Tensor& own, std::uint64_t number);
  /// The second half. `own` is the same; its elements are overwritten.
  SharedSum sum(const at::Tensor& own, std::uint64_t number);

  void all_reduce(const at::Tensor& tensor, std::uint64_t number);
  void broadcast(const at::Tensor& tensor, int root, std::uint64_t number);
  void barrier(std::uint64_t number);

 private:
  // Every collective call has tags for two stages.
  MessageTag tag(std::uint64_t number, std::uint64_t stage) const;
  std::vector<Letter> receive_from_others(MessageTag tag);
  at::Tensor of_member(int member, const at::Tensor& own, const std::vector<Letter>& letters) const;

  std::shared_ptr<Mail> mail_;
  std::vector<std::size_t> workers_;
  std::vector<std::size_t> others_;
  std::uint64_t id_;
  int own_ = 0;
};

}  // namespace decent
