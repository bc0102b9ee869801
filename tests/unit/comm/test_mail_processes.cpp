// Mail between processes, of which one ends without a word.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <sstream>
#include <string>
#include <vector>

#include "../support/child_process.h"
#include "decent/comm/shared_memory/mail.h"
#include "decent/core/error.h"
#include "letters.h"

namespace decent {
namespace {

using testing::ChildProcess;
using testing::kTag;
using testing::receive_text;
using testing::send_text;
using testing::text_of;

constexpr MessageTag kGo{.group = 7, .number = 2};
const std::vector<std::size_t> kParent{0}, kChild{1};

std::string line_of(const ArenaAddress& address) {
  std::ostringstream text;
  text << address.process << ' ' << address.descriptor << ' ' << address.token << ' '
       << address.bytes;
  return text.str();
}

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    out = Socket(ends[0]);
    in = Socket(ends[1]);
  }
  Socket out, in;
};

// This process is worker 0, and a child, which does `work`, is worker 1. Each opens the other's
// arena through /proc.
class TwoWorkers {
 public:
  using Work = std::function<std::string(Mail& mail)>;

  explicit TwoWorkers(const Work& work)
      : own_(Mail::make_arena(2)), child_([this, work] { return run(work); }) {
    char text[200] = {};
    EXPECT_GT(::read(told_.out.descriptor(), text, sizeof text - 1), 0);
    ArenaAddress address;
    std::istringstream(text) >> address.process >> address.descriptor >> address.token >>
        address.bytes;
    theirs_ = Arena::open(address);
    EXPECT_EQ(::write(opened_.in.descriptor(), "o", 1), 1);
  }

  // Of this process; made when it is first asked for.
  Mail& mail() {
    if (!mail_) mail_ = std::make_shared<Mail>(0, std::vector{own_, theirs_});
    return *mail_;
  }

  pid_t child() const { return theirs_->address().process; }

  // What `work` returned; waits for it.
  std::string result() { return child_.result(); }

 private:
  std::string run(const Work& work) {
    const auto arena = Mail::make_arena(2);
    const std::string text = line_of(arena->address());
    char opened = 0;
    if (::write(told_.in.descriptor(), text.data(), text.size()) < 0 ||
        ::read(opened_.out.descriptor(), &opened, 1) != 1)
      return "not connected";
    const auto mail = std::make_shared<Mail>(1, std::vector{Arena::open(own_->address()), arena});
    return work(*mail);
  }

  std::shared_ptr<Arena> own_, theirs_;
  Pipe told_, opened_;
  ChildProcess child_;
  std::shared_ptr<Mail> mail_;
};

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  ::_exit(1);
}

const std::string kKilled = "error: killed by signal 9";

// Sends numbers in two blocks in turn, and returns the first thing that was wrong with those that
// the other sent, or "".
std::string exchange_numbers(Mail& mail, const std::vector<std::size_t>& other) {
  const Block blocks[2] = {mail.take(8), mail.take(8)};
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    auto* const own = reinterpret_cast<std::uint64_t*>(blocks[i % 2].data());
    mail.wait_until_read(own);
    *own = i;
    mail.send(own, 8, other, kTag);
    const Letter letter = mail.receive(other.front(), kTag);
    const std::uint64_t got = *reinterpret_cast<const std::uint64_t*>(letter.data());
    if (got != i) return std::to_string(got) + " in place of " + std::to_string(i);
  }
  mail.wait_until_read(blocks[0].data());
  mail.wait_until_read(blocks[1].data());
  return "";
}

TEST(MailOfProcesses, ExchangesMessages) {
  TwoWorkers workers([](Mail& mail) { return exchange_numbers(mail, kParent); });
  EXPECT_EQ(exchange_numbers(workers.mail(), kChild), "");
  EXPECT_EQ(workers.result(), "");
}

TEST(MailOfProcesses, LetsReadersWriteToALetter) {
  TwoWorkers workers([](Mail& mail) {
    const Letter letter = mail.receive(0, kTag);
    std::memcpy(letter.data(), "their", 5);
    return text_of(letter);
  });
  Mail& mail = workers.mail();
  const Block block = mail.take(9);
  std::memcpy(block.data(), "some text", 9);
  mail.send(block.data(), 9, kChild, kTag);
  mail.wait_until_read(block.data());
  EXPECT_EQ(std::memcmp(block.data(), "theirtext", 9), 0);
  EXPECT_EQ(workers.result(), "theirtext");
}

TEST(MailOfProcesses, WhoWaitsForAMessageLearnsThatItsSenderWasKilled) {
  TwoWorkers workers([](Mail& mail) -> std::string {
    mail.receive(0, kGo);
    die();
  });
  workers.mail().signal(kChild, kGo);
  EXPECT_THROW(workers.mail().receive(1, kTag), PeerLost);
  EXPECT_EQ(workers.result(), kKilled);
}

TEST(MailOfProcesses, WhoWaitsForAMessageLearnsThatItsSenderExited) {
  TwoWorkers workers([](Mail& mail) -> std::string {
    mail.receive(0, kGo);
    ::_exit(0);
  });
  workers.mail().signal(kChild, kGo);
  EXPECT_THROW(workers.mail().receive(1, kTag), PeerLost);
  EXPECT_EQ(workers.result(), "");
}

TEST(MailOfProcesses, WhoWaitsForAReaderLearnsThatItWasKilled) {
  TwoWorkers workers([](Mail& mail) -> std::string {
    const Letter letter = mail.receive(0, kTag);
    die();
  });
  Mail& mail = workers.mail();
  const Block block = mail.take(8);
  mail.send(block.data(), 8, kChild, kTag);
  EXPECT_THROW(mail.wait_until_read(block.data()), PeerLost);
  EXPECT_THROW(mail.wait_until_read(block.data()), PeerLost) << "a second time";
  EXPECT_EQ(workers.result(), kKilled);
}

TEST(MailOfProcesses, WhoWaitsForAPlaceLearnsThatTheReaderWasKilled) {
  TwoWorkers workers([](Mail& mail) -> std::string {
    mail.receive(0, kTag);
    die();
  });
  Mail& mail = workers.mail();
  const auto send_without_end = [&] {
    while (true) mail.signal(kChild, kTag);
  };
  EXPECT_THROW(send_without_end(), PeerLost);
  EXPECT_EQ(workers.result(), kKilled);
}

TEST(MailOfProcesses, BringsWhatWasSentBeforeTheSenderWasKilled) {
  TwoWorkers workers([](Mail& mail) -> std::string {
    send_text(mail, kParent, "first");
    send_text(mail, kParent, "last");
    die();
  });
  Mail& mail = workers.mail();
  const Letter held = mail.receive(1, kTag);
  EXPECT_EQ(workers.result(), kKilled);
  EXPECT_EQ(text_of(held), "first");
  EXPECT_EQ(receive_text(mail, 1), "last");
  EXPECT_THROW(mail.receive(1, kTag), PeerLost);
}

TEST(MailOfProcesses, KnowsThatAWorkerHadEndedBeforeItBegan) {
  TwoWorkers workers([](Mail&) -> std::string { die(); });
  EXPECT_EQ(workers.result(), kKilled);
  EXPECT_THROW(workers.mail().receive(1, kTag), PeerLost);
}

TEST(MailOfProcesses, WaitsForAWorkerThatIsStopped) {
  TwoWorkers workers([](Mail& mail) -> std::string {
    mail.receive(0, kGo);
    ::raise(SIGSTOP);
    send_text(mail, kParent, "there again");
    mail.receive(0, kGo);
    return "done";
  });
  Mail& mail = workers.mail();
  mail.signal(kChild, kGo);
  int status = 0;
  ::waitpid(workers.child(), &status, WUNTRACED);
  ASSERT_TRUE(WIFSTOPPED(status));
  auto wait = std::async(std::launch::async, [&] { return receive_text(mail, 1); });
  EXPECT_EQ(wait.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  ::kill(workers.child(), SIGCONT);
  EXPECT_EQ(wait.get(), "there again");
  mail.signal(kChild, kGo);
  EXPECT_EQ(workers.result(), "done");
}

}  // namespace
}  // namespace decent
