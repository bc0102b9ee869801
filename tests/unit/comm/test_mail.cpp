#include "decent/comm/shared_memory/mail.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "decent/core/error.h"
#include "letters.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using testing::kTag;
using testing::receive_text;
using testing::send_text;

constexpr int kMoreThanARingHas = 3000;

// Workers of this process, which all have the same mapping of each arena.
class MailsOfThreads {
 public:
  explicit MailsOfThreads(std::size_t workers) {
    while (arenas_.size() < workers) arenas_.push_back(Mail::make_arena(workers));
    for (std::size_t own = 0; own < workers; ++own)
      mails_.push_back(std::make_shared<Mail>(own, arenas_));
  }

  Mail& operator[](std::size_t worker) { return *mails_[worker]; }
  const Arena& arena(std::size_t worker) const { return *arenas_[worker]; }

  // Bytes of a worker's memory.
  std::int64_t size_of(std::size_t worker) const {
    struct stat status {};
    const int descriptor = arenas_[worker]->address().descriptor;
    EXPECT_EQ(::fstat(descriptor, &status), 0);
    return status.st_size;
  }

 private:
  std::vector<std::shared_ptr<Arena>> arenas_;
  std::vector<std::shared_ptr<Mail>> mails_;
};

void write_text(const Block& block, const std::string& text, std::int64_t at = 0) {
  std::memcpy(block.data() + at, text.data(), text.size());
}

// "waits" while it does, else how it ended.
std::string state_of(std::future<void>& wait) {
  if (wait.wait_for(50ms) == std::future_status::timeout) return "waits";
  try {
    wait.get();
    return "done";
  } catch (const PeerLost& error) {
    return error.what();
  }
}

std::string end_of(std::future<void> wait) {
  wait.wait();
  return state_of(wait);
}

template <typename Act>
std::future<void> in_thread(Act act) {
  return std::async(std::launch::async, act);
}

const char* const kOtherLeft = "the other worker has left";
const char* const kThisLeft = "this worker has left";

TEST(Mail, BringsMessagesOfATagInTheirOrder) {
  MailsOfThreads mails(2);
  for (const char* text : {"one", "two", "three"}) send_text(mails[0], {1}, text);
  for (const char* text : {"one", "two", "three"}) EXPECT_EQ(receive_text(mails[1], 0), text);
}

TEST(Mail, FindsTagsInAnyOrder) {
  MailsOfThreads mails(3);
  const MessageTag other_number{.group = 7, .number = 2}, other_group{.group = 8, .number = 1};
  send_text(mails[0], {2}, "a");
  send_text(mails[0], {2}, "b", other_number);
  send_text(mails[0], {2}, "c", other_group);
  send_text(mails[1], {2}, "d");
  EXPECT_EQ(receive_text(mails[2], 1), "d");
  EXPECT_EQ(receive_text(mails[2], 0, other_group), "c");
  EXPECT_EQ(receive_text(mails[2], 0, other_number), "b");
  EXPECT_EQ(receive_text(mails[2], 0), "a");
}

TEST(Mail, WaitsForTheMessage) {
  MailsOfThreads mails(2);
  auto wait = in_thread([&] { EXPECT_EQ(receive_text(mails[1], 0), "late"); });
  EXPECT_EQ(state_of(wait), "waits");
  send_text(mails[0], {1}, "of another tag", {});
  EXPECT_EQ(state_of(wait), "waits");
  send_text(mails[0], {1}, "late");
  EXPECT_EQ(end_of(std::move(wait)), "done");
}

TEST(Mail, HasMessagesWithoutBytes) {
  MailsOfThreads mails(2);
  const std::vector<std::size_t> to{1};
  mails[0].signal(to, kTag);
  const Block block = mails[0].take(0);
  mails[0].send(block.data(), 0, to, kTag);
  send_text(mails[0], to, "full");
  EXPECT_EQ(mails[1].receive(0, kTag).bytes(), 0);
  EXPECT_EQ(mails[1].receive(0, kTag).bytes(), 0);
  EXPECT_EQ(receive_text(mails[1], 0), "full");
  mails[0].wait_until_read(block.data());
}

TEST(Mail, SendsToItself) {
  MailsOfThreads mails(1);
  send_text(mails[0], {0}, "note");
  EXPECT_EQ(receive_text(mails[0], 0), "note");
}

TEST(Mail, SendsAnyPartOfABlock) {
  MailsOfThreads mails(2);
  const std::vector<std::size_t> to{1};
  const Block block = mails[0].take(100'000);
  write_text(block, "begin");
  write_text(block, "end", 100'000 - 3);
  mails[0].send(block.data() + 100'000 - 3, 3, to, kTag);
  mails[0].send(block.data() + 1, 4, to, kTag);
  EXPECT_EQ(receive_text(mails[1], 0), "end");
  EXPECT_EQ(receive_text(mails[1], 0), "egin");
}

TEST(Mail, SendsNothingFromOutsideOfItsBlocks) {
  MailsOfThreads mails(2);
  const std::vector<std::size_t> to{1};
  std::byte elsewhere{};
  const Block theirs = mails[1].take(1);
  EXPECT_THROW(mails[0].send(&elsewhere, 1, to, kTag), std::logic_error);
  const Block own = mails[0].take(1);
  EXPECT_THROW(mails[0].send(&elsewhere, 1, to, kTag), std::logic_error);
  EXPECT_THROW(mails[0].send(theirs.data(), 1, to, kTag), std::logic_error);
  EXPECT_THROW(mails[0].send(mails.arena(0).at(0), 1, to, kTag), std::logic_error);
  EXPECT_FALSE(mails[0].holds(&elsewhere));
  EXPECT_FALSE(mails[0].holds(theirs.data()));
  EXPECT_TRUE(mails[0].holds(own.data()));
}

TEST(Mail, LetsAllReadersReadTheSameMemory) {
  MailsOfThreads mails(4);
  const std::vector<std::size_t> to{1, 2, 3};
  const Block block = mails[0].take(4);
  write_text(block, "text");
  mails[0].send(block.data(), 4, to, kTag);
  for (const std::size_t reader : to)
    EXPECT_EQ(mails[reader].receive(0, kTag).data(), block.data());
}

TEST(Mail, AlignsBlocks) {
  MailsOfThreads mails(1);
  for (const std::int64_t bytes : {0, 1, 4096, 4097}) {
    const Block block = mails[0].take(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 128, 0U) << bytes;
  }
}

TEST(Mail, WaitsUntilAllReadersAreDone) {
  MailsOfThreads mails(3);
  const std::vector<std::size_t> to{1, 2};
  const Block block = mails[0].take(4);
  mails[0].send(block.data(), 4, to, kTag);
  auto wait = in_thread([&] { mails[0].wait_until_read(block.data()); });
  EXPECT_EQ(state_of(wait), "waits") << "nobody has received it";
  {
    const Letter letter = mails[1].receive(0, kTag);
    { const Letter other = mails[2].receive(0, kTag); }
    EXPECT_EQ(state_of(wait), "waits") << "one still has it";
  }
  EXPECT_EQ(end_of(std::move(wait)), "done");
}

TEST(Mail, CountsMessagesOfABlockByThemselves) {
  MailsOfThreads mails(2);
  const std::vector<std::size_t> to{1};
  const Block block = mails[0].take(4);
  mails[0].send(block.data(), 4, to, kTag);
  mails[0].send(block.data(), 2, to, kTag);
  { const Letter first = mails[1].receive(0, kTag); }
  auto wait = in_thread([&] { mails[0].wait_until_read(block.data() + 1); });
  EXPECT_EQ(state_of(wait), "waits");
  { const Letter second = mails[1].receive(0, kTag); }
  EXPECT_EQ(end_of(std::move(wait)), "done");
}

TEST(Mail, WaitsForNoOtherBlock) {
  MailsOfThreads mails(2);
  const std::vector<std::size_t> to{1};
  const Block read = mails[0].take(4), unread = mails[0].take(4), not_sent = mails[0].take(4);
  mails[0].send(unread.data(), 4, to, kTag);
  mails[0].send(read.data(), 4, to, {});
  { const Letter letter = mails[1].receive(0, {}); }
  mails[0].wait_until_read(read.data());
  mails[0].wait_until_read(not_sent.data());
}

TEST(Mail, KeepsALetterAsLongAsItIsHeld) {
  MailsOfThreads mails(2);
  send_text(mails[0], {1}, "kept");  // its block is given back
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) write_text(blocks.emplace_back(mails[0].take(4)), "over");
  EXPECT_EQ(receive_text(mails[1], 0), "kept");
}

TEST(Mail, UsesMemoryAgain) {
  MailsOfThreads mails(2);
  std::int64_t after_some = 0;
  for (int round = 0; round < 10'000; ++round) {
    if (round == 100) after_some = mails.size_of(0);
    const std::string text(static_cast<std::size_t>(1 + round % 97 * 331), 'x');
    send_text(mails[0], {1}, text);
    send_text(mails[0], {1}, "short");
    ASSERT_EQ(receive_text(mails[1], 0), text);
    ASSERT_EQ(receive_text(mails[1], 0), "short");
  }
  EXPECT_EQ(mails.size_of(0), after_some);
}

TEST(Mail, UsesMemoryAgainThatWasReadAfterItWasGivenBack) {
  MailsOfThreads mails(2);
  const std::byte* memory = nullptr;
  {
    const Block block = mails[0].take(4);
    memory = block.data();
    mails[0].send(memory, 4, std::vector<std::size_t>{1}, kTag);
  }
  Letter letter = mails[1].receive(0, kTag);
  EXPECT_NE(mails[0].take(4).data(), memory);
  { const Letter ends = std::move(letter); }
  const Block one = mails[0].take(4), two = mails[0].take(4);
  EXPECT_TRUE(one.data() == memory || two.data() == memory);
}

TEST(Mail, TakesNoLargeBlockForLittle) {
  MailsOfThreads mails(1);
  const std::byte* large = nullptr;
  {
    const Block block = mails[0].take(1 << 24);
    large = block.data();
  }
  EXPECT_NE(mails[0].take(1).data(), large);
  EXPECT_EQ(mails[0].take(1 << 24).data(), large);
}

// Sends more signals than a ring has places, then receives as many from each of the others.
void flood(Mail& mail, const std::vector<std::size_t>& others) {
  for (std::uint64_t i = 0; i < kMoreThanARingHas; ++i) mail.signal(others, {.number = i});
  for (const std::size_t other : others)
    for (std::uint64_t i = kMoreThanARingHas; i-- > 0;) mail.receive(other, {.number = i});
}

TEST(Mail, FullRingsInAllDirectionsDoNotHang) {
  MailsOfThreads mails(3);
  auto first = in_thread([&] { flood(mails[0], {1, 2}); });
  auto second = in_thread([&] { flood(mails[1], {0, 2}); });
  auto third = in_thread([&] { flood(mails[2], {0, 1}); });
  for (auto* each : {&first, &second, &third}) EXPECT_EQ(end_of(std::move(*each)), "done");
}

TEST(Mail, WaitsForAPlaceInTheRing) {
  MailsOfThreads mails(2);
  auto sender = in_thread([&] {
    for (int i = 0; i < kMoreThanARingHas; ++i) send_text(mails[0], {1}, std::to_string(i));
  });
  EXPECT_EQ(state_of(sender), "waits");
  for (int i = 0; i < kMoreThanARingHas; ++i)
    EXPECT_EQ(receive_text(mails[1], 0), std::to_string(i));
  EXPECT_EQ(end_of(std::move(sender)), "done");
}

TEST(Mail, ManyThreadsOfAWorkerWaitAtOnce) {
  constexpr std::uint64_t kThreads = 16;
  MailsOfThreads mails(2);
  std::vector<std::future<void>> waits;
  for (std::uint64_t i = 0; i < kThreads; ++i)
    waits.push_back(in_thread(
        [&, i] { EXPECT_EQ(receive_text(mails[1], 0, {.number = i}), std::to_string(i)); }));
  EXPECT_EQ(state_of(waits.back()), "waits");
  for (std::uint64_t i = kThreads; i-- > 0;) {
    send_text(mails[0], {1}, std::to_string(i), {.number = i});
    EXPECT_EQ(end_of(std::move(waits[i])), "done");
  }
}

TEST(Mail, ThrowsWhereTheOtherCloses) {
  MailsOfThreads mails(3);
  const Block block = mails[0].take(4);
  mails[0].send(block.data(), 4, std::vector<std::size_t>{1, 2}, kTag);
  { const Letter read = mails[1].receive(0, kTag); }
  auto receiving = in_thread([&] { receive_text(mails[0], 2); });
  auto until_read = in_thread([&] { mails[0].wait_until_read(block.data()); });
  auto from_others = in_thread([&] { receive_text(mails[0], 1); });
  auto sending = in_thread([&] {
    for (int i = 0; i < kMoreThanARingHas; ++i) mails[0].signal(std::vector<std::size_t>{2}, kTag);
  });
  for (auto* each : {&receiving, &until_read, &from_others, &sending})
    EXPECT_EQ(state_of(*each), "waits");
  mails[2].close();
  for (auto* each : {&receiving, &until_read, &sending})
    EXPECT_EQ(end_of(std::move(*each)), kOtherLeft);
  EXPECT_EQ(state_of(from_others), "waits") << "who waits for another worker";
  EXPECT_EQ(end_of(in_thread([&] { mails[0].wait_until_read(block.data()); })), kOtherLeft)
      << "a second time";
  send_text(mails[1], {0}, "there");
  EXPECT_EQ(end_of(std::move(from_others)), "done");
}

TEST(Mail, BringsTheLastMessageBeforeTheOtherCloses) {
  MailsOfThreads mails(2);
  send_text(mails[0], {1}, "last");
  mails[0].close();
  EXPECT_EQ(receive_text(mails[1], 0), "last");
  EXPECT_THROW(receive_text(mails[1], 0), PeerLost);
}

TEST(Mail, IsNotMissedByWhatItHadReadBeforeItClosed) {
  MailsOfThreads mails(2);
  const Block block = mails[0].take(4);
  mails[0].send(block.data(), 4, std::vector<std::size_t>{1}, kTag);
  { const Letter read = mails[1].receive(0, kTag); }
  mails[1].close();
  mails[0].wait_until_read(block.data());
}

TEST(Mail, ForgetsReadersThatAreDone) {
  MailsOfThreads mails(3);
  const Block block = mails[0].take(4);
  mails[0].send(block.data(), 4, std::vector<std::size_t>{1}, kTag);
  { const Letter read = mails[1].receive(0, kTag); }
  mails[0].wait_until_read(block.data());
  mails[1].close();
  mails[0].send(block.data(), 4, std::vector<std::size_t>{2}, kTag);
  auto wait = in_thread([&] { mails[0].wait_until_read(block.data()); });
  EXPECT_EQ(state_of(wait), "waits") << "for the worker that is there";
  { const Letter read = mails[2].receive(0, kTag); }
  EXPECT_EQ(end_of(std::move(wait)), "done");
}

TEST(Mail, WakesItsOwnThreadsWhenItCloses) {
  MailsOfThreads mails(2);
  const Block block = mails[0].take(4);
  mails[0].send(block.data(), 4, std::vector<std::size_t>{1}, kTag);
  auto receiving = in_thread([&] { receive_text(mails[0], 1); });
  auto until_read = in_thread([&] { mails[0].wait_until_read(block.data()); });
  EXPECT_EQ(state_of(receiving), "waits");
  EXPECT_EQ(state_of(until_read), "waits");
  mails[0].close();
  EXPECT_EQ(end_of(std::move(receiving)), kThisLeft);
  EXPECT_EQ(end_of(std::move(until_read)), kThisLeft);
}

}  // namespace
}  // namespace decent
