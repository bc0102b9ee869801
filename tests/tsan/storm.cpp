#include "storm.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <mutex>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "decent/core/splitmix64.h"

namespace decent::storm {
namespace {

// ---- what everybody knows ----

class Dice {
 public:
  explicit Dice(std::uint64_t key) : key_(key) {}

  std::uint64_t next() { return splitmix64(key_, thrown_++); }
  std::size_t below(std::size_t limit) { return next() % limit; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t key_;
  std::uint64_t thrown_ = 0;
};

enum class Kind {
  exchange,  // everybody's block to all others
  parts,     // the two halves of the block as messages of their own, the second read first
  sum,       // of all blocks, each member its share, in order of ranks
  signals,   // more messages without bytes than a ring has places, to all others
  one_way,   // such messages of the first member
};

struct Group {
  std::vector<std::size_t> members;  // in order
  Kind kind = Kind::exchange;
  std::size_t words = 0;  // floats in each member's block
  std::uint64_t key = 0;  // decides what is in the blocks
};

constexpr std::size_t kMostWords = 8192;
constexpr int kSignals = 3000;  // a ring has 1024 places

Kind kind_from(Dice& dice) {
  if (dice.one_in(2048)) return dice.one_in(2) ? Kind::signals : Kind::one_way;
  const std::size_t side = dice.below(4);
  return side == 0 ? Kind::parts : side == 1 ? Kind::sum : Kind::exchange;
}

std::vector<Group> groups_of(const Plan& plan, std::size_t lane, std::uint64_t round) {
  Dice dice(splitmix64(splitmix64(plan.seed, lane), round));
  std::vector<std::size_t> workers(plan.workers);
  std::iota(workers.begin(), workers.end(), std::size_t{0});
  dice.shuffle(workers);
  std::vector<Group> groups;
  for (std::size_t begin = 0; begin < workers.size();) {
    const std::size_t left = workers.size() - begin;
    const std::size_t size = dice.one_in(2) ? std::min<std::size_t>(left, 2) : 1 + dice.below(left);
    Group& group = groups.emplace_back();
    group.members.assign(workers.begin() + static_cast<std::ptrdiff_t>(begin),
                         workers.begin() + static_cast<std::ptrdiff_t>(begin + size));
    std::sort(group.members.begin(), group.members.end());
    group.kind = kind_from(dice);
    group.words = dice.below(dice.one_in(64) ? kMostWords : 100);
    group.key = dice.next();
    begin += size;
  }
  return groups;
}

// Word `i` of a member's block.
float word(std::uint64_t key, std::size_t member, std::size_t i) {
  return static_cast<float>(splitmix64(key, (member << 32) + i) >> 40) * 0x1p-24F;
}

float sum_of_words(const Group& group, std::size_t i) {
  float sum = 0;
  for (const std::size_t member : group.members) sum += word(group.key, member, i);
  return sum;
}

// Where the share of the member at place `index` begins.
std::size_t begin_of_part(const Group& group, std::size_t index) {
  return group.words * index / group.members.size();
}

// ---- a lane ----

class Lane {
 public:
  Lane(const Plan& plan, std::shared_ptr<Mail> mail, std::size_t lane)
      : plan_(plan),
        mail_(std::move(mail)),
        lane_(lane),
        dice_(splitmix64(splitmix64(~plan.seed, lane), mail_->own())),
        turns_{mail_->take(kMostWords * sizeof(float)), mail_->take(kMostWords * sizeof(float))} {}

  void run() {
    const std::int64_t most = plan_.exchanges / static_cast<std::int64_t>(plan_.lanes);
    for (std::int64_t done = 0; done < most; ++round_) {
      for (const Group& group : groups_of(plan_, lane_, round_)) {
        if (group.members.size() < 2) continue;
        ++done;
        if (std::ranges::count(group.members, mail_->own()) > 0) take_part(group);
      }
      check_held(before_);
      before_.swap(held_);
    }
    leave();
  }

 private:
  // A letter that is kept until the end of the next round.
  struct Held {
    Letter letter;
    std::uint64_t key = 0;
    std::size_t from = 0;
    std::size_t first_word = 0;
  };

  MessageTag tag(std::uint64_t which) const { return {lane_, 2 * round_ + which}; }

  void take_part(const Group& group) {
    others_ = group.members;
    std::erase(others_, mail_->own());
    delay();
    if (group.kind == Kind::signals) return signals();
    if (group.kind == Kind::one_way) return signals_of(group.members.front());
    if (group.kind == Kind::sum) return with_block(group, &Lane::sum);
    with_block(group, group.kind == Kind::parts ? &Lane::parts : &Lane::exchange);
  }

  // Mostly one of two blocks in turn; now and then one that is taken for this once, and given back
  // while it is read.
  void with_block(const Group& group, void (Lane::*work)(const Group&, float*)) {
    if (dice_.one_in(8)) {
      const Block once = mail_->take(static_cast<std::int64_t>(group.words * sizeof(float)));
      return fill_and(group, once, work);
    }
    const Block& block = turns_[round_ % 2];
    mail_->wait_until_read(block.data());
    fill_and(group, block, work);
  }

  void fill_and(const Group& group, const Block& block, void (Lane::*work)(const Group&, float*)) {
    auto* const own = reinterpret_cast<float*>(block.data());
    for (std::size_t i = 0; i < group.words; ++i) own[i] = word(group.key, mail_->own(), i);
    delay();
    (this->*work)(group, own);
  }

  void exchange(const Group& group, float* own) {
    send(own, group.words, tag(0));
    for (const std::size_t from : in_any_order()) receive(group, from, tag(0), 0, group.words);
  }

  void parts(const Group& group, float* own) {
    const std::size_t half = group.words / 2;
    send(own, half, tag(0));
    send(own + half, group.words - half, tag(1));
    for (const std::size_t from : in_any_order()) {
      receive(group, from, tag(1), half, group.words - half);
      receive(group, from, tag(0), 0, half);
    }
  }

  void sum(const Group& group, float* own) {
    send(own, group.words, tag(0));
    {
      const std::vector<Letter> letters = receive_all(tag(0));
      sum_own_share(group, own, letters);
    }
    delay();
    send(own, group.words, tag(1));
    const std::vector<Letter> letters = receive_all(tag(1));
    for (std::size_t index = 0, other = 0; index < group.members.size(); ++index) {
      const bool is_own = group.members[index] == mail_->own();
      const float* const block = is_own ? own : words_of(letters[other++]);
      for (std::size_t i = begin_of_part(group, index); i < begin_of_part(group, index + 1); ++i)
        check(block[i], sum_of_words(group, i), group.members[index], i);
    }
  }

  void sum_own_share(const Group& group, float* own, const std::vector<Letter>& letters) {
    const auto index = static_cast<std::size_t>(std::ranges::find(group.members, mail_->own()) -
                                                group.members.begin());
    for (std::size_t i = begin_of_part(group, index); i < begin_of_part(group, index + 1); ++i) {
      float sum = 0;
      for (std::size_t place = 0, other = 0; place < group.members.size(); ++place)
        sum += place == index ? own[i] : words_of(letters[other++])[i];
      own[i] = sum;
    }
  }

  void signals() {
    send_signals();
    for (const std::size_t from : in_any_order()) receive_signals(from);
  }

  void signals_of(std::size_t sender) {
    if (sender == mail_->own()) {
      send_signals();
    } else {
      receive_signals(sender);
    }
  }

  void send_signals() {
    for (int i = 0; i < kSignals; ++i) mail_->signal(others_, tag(0));
  }

  void receive_signals(std::size_t from) {
    for (int i = 0; i < kSignals; ++i) mail_->receive(from, tag(0));
  }

  // Whoever leaves is missed by those who wait until their messages are read. So all leave when all
  // have read everything.
  void leave() {
    before_.clear();
    others_.clear();
    for (std::size_t worker = 0; worker < plan_.workers; ++worker)
      if (worker != mail_->own()) others_.push_back(worker);
    mail_->signal(others_, tag(0));
    for (const std::size_t from : others_) mail_->receive(from, tag(0));
  }

  void send(const float* words, std::size_t count, MessageTag tag) {
    mail_->send(words, static_cast<std::int64_t>(count * sizeof(float)), others_, tag);
  }

  void receive(const Group& group, std::size_t from, MessageTag tag, std::size_t first_word,
               std::size_t words) {
    Held held{mail_->receive(from, tag), group.key, from, first_word};
    if (held.letter.bytes() != static_cast<std::int64_t>(words * sizeof(float)))
      fail("a message of the wrong length", from);
    delay();
    check_content(held);
    if (dice_.one_in(4)) held_.push_back(std::move(held));
  }

  std::vector<Letter> receive_all(MessageTag tag) {
    std::vector<Letter> letters;
    for (const std::size_t from : others_) letters.push_back(mail_->receive(from, tag));
    return letters;
  }

  static const float* words_of(const Letter& letter) {
    return reinterpret_cast<const float*>(letter.data());
  }

  void check_content(const Held& held) const {
    const auto words = static_cast<std::size_t>(held.letter.bytes()) / sizeof(float);
    for (std::size_t i = 0; i < words; ++i)
      check(words_of(held.letter)[i], word(held.key, held.from, held.first_word + i), held.from, i);
  }

  // Nobody has written there in the meantime.
  void check_held(std::vector<Held>& held) {
    for (const Held& each : held) check_content(each);
    held.clear();
  }

  void check(float got, float expected, std::size_t from, std::size_t i) const {
    if (std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(expected))
      fail("wrong word " + std::to_string(i), from);
  }

  [[noreturn]] void fail(const std::string& what, std::size_t from) const {
    throw std::logic_error(what + " from worker " + std::to_string(from) + ", read by worker " +
                           std::to_string(mail_->own()) + " in round " + std::to_string(round_) +
                           " of lane " + std::to_string(lane_));
  }

  std::vector<std::size_t> in_any_order() {
    std::vector<std::size_t> order = others_;
    dice_.shuffle(order);
    return order;
  }

  void delay() {
    if (dice_.one_in(8)) std::this_thread::yield();
    if (dice_.one_in(64)) std::this_thread::sleep_for(std::chrono::microseconds(dice_.below(200)));
  }

  const Plan plan_;
  const std::shared_ptr<Mail> mail_;
  const std::size_t lane_;
  Dice dice_;  // for what the others need not know
  const Block turns_[2];
  std::uint64_t round_ = 0;
  std::vector<std::size_t> others_;  // in the group of this round
  std::vector<Held> held_, before_;  // letters of this round and of the one before
};

}  // namespace

Flags flags_of(std::span<char*> arguments, Flags defaults) {
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string flag = arguments[i];
    const auto known = defaults.find(flag);
    if (known == defaults.end() || i + 1 == arguments.size())
      throw std::invalid_argument("unknown flag, or no number after it: " + flag);
    known->second = std::stoll(arguments[i + 1]);
  }
  return defaults;
}

Plan plan_of(const Flags& flags) {
  return {.seed = static_cast<std::uint64_t>(flags.at("--seed")),
          .workers = static_cast<std::size_t>(flags.at("--workers")),
          .lanes = static_cast<std::size_t>(flags.at("--lanes")),
          .exchanges = flags.at("--exchanges")};
}

void run(const Plan& plan, const std::shared_ptr<Mail>& mail) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (std::size_t lane = 0; lane < plan.lanes; ++lane) {
    threads.emplace_back([&, lane] {
      try {
        Lane(plan, mail, lane).run();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        mail->close();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace decent::storm
