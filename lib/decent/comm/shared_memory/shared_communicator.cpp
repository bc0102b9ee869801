#include "decent/comm/shared_memory/shared_communicator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "decent/comm/group_text.h"
#include "decent/comm/shared_memory/group.h"
#include "decent/comm/task_thread.h"
#include "decent/core/error.h"
#include "decent/core/splitmix64.h"

namespace decent {
namespace {

// Runs `work`, an operation with the workers `ranks`, and says in its error which one failed.
template <typename Work>
auto with_name(const Mail& mail, const std::vector<int>& ranks, const std::string& operation,
               const Work& work) {
  return unless_lost(mail.lost(), ranks, [&] {
    try {
      return work();
    } catch (const GivenUp&) {
      throw;
    } catch (const PeerLost& error) {
      throw PeerLost(operation + " failed: " + error.what());
    }
  });
}

// An operation of the group's thread.
template <typename Result>
class TaskPending : public PendingReceived {
 public:
  explicit TaskPending(std::shared_future<Result> result) : result_(std::move(result)) {}

  void wait() override { result_.get(); }
  bool done() override {
    return result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  std::vector<ReceivedPart> parts() const override {
    if constexpr (std::is_same_v<Result, SharedSum>) return result_.get().parts();
    throw std::logic_error("an operation in place has no parts");
  }

 private:
  std::shared_future<Result> result_;
};

// A message from a peer. Nothing runs in the background: the message is there, or it is not.
class LetterPending : public PendingReceived {
 public:
  LetterPending(std::shared_ptr<SharedGroup> group, int peer, int rank, int tag,
                const at::Tensor& like, std::string operation)
      : group_(std::move(group)),
        peer_(peer),
        rank_(rank),
        tag_(tag),
        sizes_(like.sizes().vec()),
        options_(like.options()),
        bytes_(static_cast<std::int64_t>(like.nbytes())),
        operation_(std::move(operation)) {}

  void wait() override {
    if (letter_) return;
    letter_.emplace(with_name(group_->mail(), {rank_}, operation_,
                              [&] { return group_->receive(peer_, tag_); }));
    if (letter_->bytes() == bytes_) return;
    throw std::logic_error(operation_ + ": " + std::to_string(bytes_) + " bytes for " +
                           std::to_string(letter_->bytes()));
  }
  bool done() override { return letter_.has_value(); }
  std::vector<ReceivedPart> parts() const override {
    return {{.begin = 0, .values = at::from_blob(letter_.value().data(), sizes_, options_)}};
  }

 private:
  std::shared_ptr<SharedGroup> group_;
  int peer_;
  int rank_;  // of the peer, in the run
  int tag_;
  std::vector<std::int64_t> sizes_;
  at::TensorOptions options_;
  std::int64_t bytes_;
  std::string operation_;
  std::optional<Letter> letter_;
};

// A message from a peer, copied to the caller's tensor.
class CopyPending : public PendingWork {
 public:
  CopyPending(std::shared_ptr<PendingReceived> received, at::Tensor to)
      : received_(std::move(received)), to_(std::move(to)) {}

  void wait() override {
    if (!received_) return;
    received_->wait();
    const at::Tensor from = received_->parts().front().values;
    if (to_.nbytes() > 0) std::memcpy(to_.data_ptr(), from.const_data_ptr(), to_.nbytes());
    received_.reset();
  }
  bool done() override { return !received_; }

 private:
  std::shared_ptr<PendingReceived> received_;
  at::Tensor to_;
};

// Closes the mail when the last group of this worker is gone, whatever threads still wait.
struct MailUser {
  std::shared_ptr<Mail> mail;
  explicit MailUser(std::shared_ptr<Mail> its) : mail(std::move(its)) {}
  MailUser(const MailUser&) = delete;
  MailUser& operator=(const MailUser&) = delete;
  ~MailUser() { mail->close(); }
};

class SharedCommunicator : public Communicator {
 public:
  SharedCommunicator(std::shared_ptr<MailUser> user, std::shared_ptr<SharedGroup> group,
                     std::vector<int> ranks)
      : user_(std::move(user)), group_(std::move(group)), ranks_(std::move(ranks)) {}

  int rank() const override { return group_->own(); }
  int size() const override { return group_->size(); }

  Pending all_reduce_sum(const at::Tensor& tensor) override {
    return run("all-reduce", [tensor](SharedGroup& group, std::uint64_t number) {
      group.all_reduce(tensor, number);
    });
  }

  Pending broadcast(const at::Tensor& tensor, int root) override {
    return run("broadcast", [tensor, root](SharedGroup& group, std::uint64_t number) {
      group.broadcast(tensor, root, number);
    });
  }

  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    if (receive.nbytes() != send.nbytes()) throw std::logic_error("exchange of two sizes");
    return std::make_unique<CopyPending>(exchange_views(send, peer, tag, nullptr), receive);
  }

  void barrier() override {
    run("barrier", [](SharedGroup& group, std::uint64_t number) { group.barrier(number); })->wait();
  }

  bool reads_in_place(int) const override { return true; }

  at::Tensor memory_to_send(std::int64_t bytes) override {
    const auto block = std::make_shared<Block>(user_->mail->take(bytes));
    return at::from_blob(
        block->data(), {bytes}, [block](void*) {}, at::kByte);
  }

  void wait_until_read(const at::Tensor& memory) override {
    const void* const data = memory.const_data_ptr();
    if (!user_->mail->holds(data)) return;
    with_name(*user_->mail, ranks_, "a message of worker " + own_rank(),
              [&] { user_->mail->wait_until_read(data); });
  }

  std::shared_ptr<PendingReceived> exchange_views(const at::Tensor& send, int peer, int tag,
                                                  const Room&) override {
    const int rank = ranks_[static_cast<std::size_t>(peer)];
    const std::string operation =
        "exchange of worker " + own_rank() + " with worker " + std::to_string(rank);
    with_name(*user_->mail, {rank}, operation, [&] { group_->send(send, peer, tag); });
    return std::make_shared<LetterPending>(group_, peer, rank, tag, send, operation);
  }

  std::shared_ptr<PendingReceived> sum_views(const at::Tensor& send, const Room&) override {
    at::Tensor own = send;
    if (!user_->mail->holds(send.const_data_ptr())) {
      own = memory_to_send(static_cast<std::int64_t>(send.nbytes())).view(send.scalar_type());
      own.copy_(send.view({-1}));
    }
    const std::uint64_t number = next_++;
    with_name(*user_->mail, ranks_, text("sum"), [&] { group_->offer(own, number); });
    return post<SharedSum>("sum",
                           [own, number](SharedGroup& group) { return group.sum(own, number); });
  }

  bool go_on_without(const std::shared_ptr<LostWorkers>& lost) override {
    user_->mail->go_on_without(lost, ranks_);
    return true;
  }

  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    std::vector<int> ranks;
    std::vector<std::size_t> workers;
    for (const int member : members) {
      ranks.push_back(ranks_.at(static_cast<std::size_t>(member)));
      workers.push_back(group_->workers().at(static_cast<std::size_t>(member)));
    }
    if (std::find(members.begin(), members.end(), rank()) == members.end())
      throw std::logic_error("subgroup(): called by a worker that is no member");
    if (ranks.size() == 1) return make_single_worker();
    // All members compute the same id without a message, also if they make another group.
    std::uint64_t id = splitmix64(group_->id(), made_[ranks]++);
    for (const int each : ranks) id = splitmix64(id, static_cast<std::uint64_t>(each));
    return std::make_shared<SharedCommunicator>(
        user_, std::make_shared<SharedGroup>(user_->mail, std::move(workers), id),
        std::move(ranks));
  }

 private:
  std::string own_rank() const { return std::to_string(ranks_[static_cast<std::size_t>(rank())]); }

  std::string text(const std::string& operation) const {
    return operation + " of worker " + own_rank() + " with workers " + rank_list(ranks_);
  }

  // In the group's thread, after all operations before it.
  template <typename Result, typename Work>
  std::shared_ptr<TaskPending<Result>> post(const std::string& operation, Work work) {
    auto result = std::make_shared<std::promise<Result>>();
    auto pending = std::make_shared<TaskPending<Result>>(result->get_future().share());
    if (!thread_) thread_ = std::make_unique<TaskThread>();
    thread_->post([group = group_, ranks = ranks_, what = text(operation), work = std::move(work),
                   result] {
      const at::NoGradGuard no_grad;
      try {
        if constexpr (std::is_void_v<Result>) {
          with_name(group->mail(), ranks, what, [&] { work(*group); });
          result->set_value();
        } else {
          result->set_value(with_name(group->mail(), ranks, what, [&] { return work(*group); }));
        }
      } catch (...) {
        result->set_exception(std::current_exception());
      }
    });
    return pending;
  }

  template <typename Work>
  Pending run(const std::string& operation, Work work) {
    auto pending = post<void>(operation, [work = std::move(work), number = next_++](
                                             SharedGroup& group) { work(group, number); });
    return std::make_unique<TaskPending<void>>(*pending);
  }

  std::shared_ptr<MailUser> user_;
  std::shared_ptr<SharedGroup> group_;
  std::vector<int> ranks_;                          // in the run
  std::uint64_t next_ = 0;                          // number of the next collective operation
  std::map<std::vector<int>, std::uint64_t> made_;  // how many subgroups of these members
  std::unique_ptr<TaskThread> thread_;              // made for the first collective operation
};

}  // namespace

std::shared_ptr<Communicator> share_memory(std::shared_ptr<Mail> mail, std::vector<int> ranks) {
  std::vector<std::size_t> workers;
  for (std::size_t worker = 0; worker < ranks.size(); ++worker) workers.push_back(worker);
  auto group = std::make_shared<SharedGroup>(mail, std::move(workers), 0);
  return std::make_shared<SharedCommunicator>(std::make_shared<MailUser>(std::move(mail)),
                                              std::move(group), std::move(ranks));
}

}  // namespace decent
