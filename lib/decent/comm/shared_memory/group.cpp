#include "decent/comm/shared_memory/group.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

namespace decent {
namespace {

// Tensors outside shared memory go through two blocks of this size in turn.
constexpr std::int64_t kWindowBytes = 1 << 20;
// Elements that are added up at a time: sums stay in the cache, and ATen works on them in the
// calling thread.
constexpr std::int64_t kPieceElements = 1 << 14;
// Shares begin at multiples of this many elements.
constexpr std::int64_t kGrainElements = 32;
// This bit is set in tags of collective calls and not in tags of users.
constexpr std::uint64_t kCollective = std::uint64_t{1} << 63;

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

// [begin, end) of the elements that member `member` adds up.
std::pair<std::int64_t, std::int64_t> share_of(int member, int members, std::int64_t numel) {
  const std::int64_t grains = (numel + kGrainElements - 1) / kGrainElements;
  const auto from = [&](std::int64_t m) {
    return std::min(numel, grains * m / members * kGrainElements);
  };
  return {from(member), from(member + 1)};
}

// to = from[0] + from[1] + .., in this order. `to` may be one of them.
void add_up(const std::vector<at::Tensor>& from, const at::Tensor& to) {
  const at::Tensor room = at::empty({std::min(kPieceElements, to.numel())}, to.options());
  for (std::int64_t begin = 0; begin < to.numel(); begin += kPieceElements) {
    const std::int64_t count = std::min(kPieceElements, to.numel() - begin);
    at::Tensor sum = room.narrow(0, 0, count);
    sum.copy_(from.front().narrow(0, begin, count));
    for (std::size_t i = 1; i < from.size(); ++i) sum.add_(from[i].narrow(0, begin, count));
    to.narrow(0, begin, count).copy_(sum);
  }
}

// Two blocks in turn, each written once its readers are done.
class Windows {
 public:
  Windows(Mail& mail, std::int64_t bytes)
      : mail_(mail), blocks_{mail.take(bytes), mail.take(bytes)} {}

  std::byte* next() {
    turn_ ^= 1;
    mail_.wait_until_read(blocks_[turn_].data());
    return blocks_[turn_].data();
  }

 private:
  Mail& mail_;
  std::array<Block, 2> blocks_;
  std::size_t turn_ = 0;
};

// Calls work(part) for parts of a contiguous tensor that fit into a window, as [numel] of its type.
template <typename Work>
void for_each_window(const at::Tensor& tensor, const Work& work) {
  const at::Tensor flat = tensor.view({-1});
  const std::int64_t most = kWindowBytes / tensor.element_size();
  for (std::int64_t begin = 0; begin < flat.numel(); begin += most)
    work(flat.narrow(0, begin, std::min(most, flat.numel() - begin)));
}

}  // namespace

SharedGroup::SharedGroup(std::shared_ptr<Mail> mail, std::vector<std::size_t> workers,
                         std::uint64_t id)
    : mail_(std::move(mail)), workers_(std::move(workers)), id_(id) {
  for (std::size_t member = 0; member < workers_.size(); ++member) {
    if (workers_[member] == mail_->own()) {
      own_ = static_cast<int>(member);
    } else {
      others_.push_back(workers_[member]);
    }
  }
}

MessageTag SharedGroup::tag(std::uint64_t number, std::uint64_t stage) const {
  return {.group = id_, .number = kCollective | number << 1 | stage};
}

void SharedGroup::send(const at::Tensor& tensor, int peer, int tag) {
  const std::size_t to = workers_[static_cast<std::size_t>(peer)];
  const MessageTag message{.group = id_, .number = static_cast<std::uint32_t>(tag)};
  const void* const data = tensor.const_data_ptr();
  if (tensor.nbytes() == 0 || mail_->holds(data))
    return mail_->send(data, bytes_of(tensor), {&to, 1}, message);
  const Block copy = mail_->take(bytes_of(tensor));
  std::memcpy(copy.data(), data, tensor.nbytes());
  mail_->send(copy.data(), bytes_of(tensor), {&to, 1}, message);
}

Letter SharedGroup::receive(int peer, int tag) {
  return mail_->receive(workers_[static_cast<std::size_t>(peer)],
                        {.group = id_, .number = static_cast<std::uint32_t>(tag)});
}

std::vector<Letter> SharedGroup::receive_from_others(MessageTag tag) {
  std::vector<Letter> letters;
  for (const std::size_t worker : others_) letters.push_back(mail_->receive(worker, tag, others_));
  return letters;
}

// The tensor that `member` has sent; it corresponds to `own`, this worker's.
at::Tensor SharedGroup::of_member(int member, const at::Tensor& own,
                                  const std::vector<Letter>& letters) const {
  if (member == own_) return own;
  const Letter& letter = letters[static_cast<std::size_t>(member < own_ ? member : member - 1)];
  if (letter.bytes() != bytes_of(own)) {
    throw std::logic_error("a sum of tensors of " + std::to_string(letter.bytes()) + " and of " +
                           std::to_string(bytes_of(own)) + " bytes");
  }
  return at::from_blob(letter.data(), own.sizes(), own.options());
}

void SharedGroup::offer(const at::Tensor& own, std::uint64_t number) {
  mail_->send(own.const_data_ptr(), bytes_of(own), others_, tag(number, 0));
}

SharedSum SharedGroup::sum(const at::Tensor& own, std::uint64_t number) {
  const at::Tensor flat = own.view({-1});
  const auto share = [&](int member, const at::Tensor& of) {
    const auto [begin, end] = share_of(member, size(), flat.numel());
    return of.narrow(0, begin, end - begin);
  };
  {
    const std::vector<Letter> offers = receive_from_others(tag(number, 0));
    std::vector<at::Tensor> addends;
    for (int member = 0; member < size(); ++member)
      addends.push_back(share(own_, of_member(member, flat, offers)));
    // Nobody else reads this part of this worker's memory.
    add_up(addends, share(own_, flat));
  }
  mail_->send(flat.const_data_ptr(), bytes_of(flat), others_, tag(number, 1));
  std::vector<Letter> letters = receive_from_others(tag(number, 1));
  std::vector<ReceivedPart> parts;
  for (int member = 0; member < size(); ++member) {
    parts.push_back({.begin = share_of(member, size(), flat.numel()).first,
                     .values = share(member, of_member(member, flat, letters))});
  }
  return {std::move(letters), std::move(parts)};
}

void SharedGroup::all_reduce(const at::Tensor& tensor, std::uint64_t number) {
  if (tensor.numel() == 0) return;
  Windows windows(*mail_, std::min(kWindowBytes, bytes_of(tensor)));
  for_each_window(tensor, [&](const at::Tensor& part) {
    const at::Tensor own = at::from_blob(windows.next(), part.sizes(), part.options());
    own.copy_(part);
    offer(own, number);
    const SharedSum result = sum(own, number);
    for (const auto& [begin, values] : result.parts())
      part.narrow(0, begin, values.numel()).copy_(values);
  });
}

void SharedGroup::broadcast(const at::Tensor& tensor, int root, std::uint64_t number) {
  if (tensor.numel() == 0) return;
  if (own_ != root) {
    for_each_window(tensor, [&](const at::Tensor& part) {
      const Letter letter =
          mail_->receive(workers_[static_cast<std::size_t>(root)], tag(number, 0), others_);
      if (letter.bytes() != bytes_of(part)) throw std::logic_error("broadcast of other sizes");
      std::memcpy(part.data_ptr(), letter.data(), part.nbytes());
    });
    return;
  }
  Windows windows(*mail_, std::min(kWindowBytes, bytes_of(tensor)));
  for_each_window(tensor, [&](const at::Tensor& part) {
    std::byte* const window = windows.next();
    std::memcpy(window, part.const_data_ptr(), part.nbytes());
    mail_->send(window, bytes_of(part), others_, tag(number, 0));
  });
}

void SharedGroup::barrier(std::uint64_t number) {
  mail_->signal(others_, tag(number, 0));
  receive_from_others(tag(number, 0));
}

}  // namespace decent
