// Ten thousand mixes of a modulo exchange in a row: the average of all copies stays what it was,
// but for the rounding of each copy's own sum.

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/parallel/storage.h"
#include "problem.h"

namespace decent {
namespace {

constexpr std::int64_t kManyMixes = 10000;
constexpr std::int64_t kElements = 340;  // 11 blocks of 32, the last one not whole

// ---- workers of one thread ----

// What was sent and not yet received, by sender, receiver and tag.
using Post = std::map<std::tuple<int, int, int>, std::deque<at::Tensor>>;

class Posted : public PendingWork {
 public:
  Posted(std::deque<at::Tensor>& from, const at::Tensor& receive)
      : from_(from), receive_(receive) {}
  void wait() override {
    if (received_) return;
    receive_.copy_(from_.at(0));
    from_.pop_front();
    received_ = true;
  }
  bool done() override { return received_; }

 private:
  std::deque<at::Tensor>& from_;
  at::Tensor receive_;
  bool received_ = false;
};

// All members start their exchanges before one of them waits.
class ByPost : public Communicator {
 public:
  ByPost(Post& post, int rank, int size) : post_(post), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    post_[{rank_, peer, tag}].push_back(send.clone());
    return std::make_unique<Posted>(post_[{peer, rank_, tag}], receive);
  }
  Pending all_reduce_sum(const at::Tensor&) override { throw std::logic_error("all_reduce_sum"); }
  Pending broadcast(const at::Tensor&, int) override { throw std::logic_error("broadcast"); }
  std::shared_ptr<Communicator> subgroup(const std::vector<int>&) override { return nullptr; }
  void barrier() override {}

 private:
  Post& post_;
  int rank_, size_;
};

// ---- mixing ----

// Half of the copies are near, within the range of the exchange, the others so far apart that every
// difference wraps.
at::Tensor weights(int rank, at::ScalarType type) {
  const at::Tensor noise = testing::scattered({kElements}, 2 + rank);
  noise.slice(0, 0, kElements / 2).mul_(0.02);
  return noise.add(testing::scattered({kElements}, 1)).to(type);
}

template <typename T>
class Copy {
 public:
  Copy(Post& post, int rank, int workers, const std::vector<Phase>& phases, double gamma)
      : x_(weights(rank, c10::CppTypeToScalarType<T>())),
        start_(values()),
        errors_(start_.size()),
        exchange_(exchange_method("modulo2").make(
            {.communicator = std::make_shared<ByPost>(post, rank, workers),
             .phases = phases,
             .buckets = {x_},
             .options = {.slices = 3},
             .schedule = constant_lr(0.01)})) {
    exchange_->set_gamma(gamma);
  }

  void start(std::int64_t step) { exchange_->start(0, step); }

  void mix() {
    const std::vector<T> before = values();
    decent::mix(x_.data_ptr(), kElements, scalar_of(x_), exchange_->wait(0));
    const std::vector<T> after = values();
    changes_ = 0;
    for (std::size_t i = 0; i < after.size(); ++i) note_error(i, before[i], after[i]);
  }

  double start_of(std::size_t i) const { return start_[i]; }
  double end_of(std::size_t i) const { return values()[i]; }
  double error_of(std::size_t i) const { return errors_[i]; }
  int changes() const { return changes_; }  // elements that the last mix changed

 private:
  std::vector<T> values() const {
    const T* x = x_.const_data_ptr<T>();
    return {x, x + kElements};
  }

  // z = x + c n, n a whole number, c the same for all members of an edge: the sum is rounded once,
  // the product once. c is far more than an ulp of x: z = x means n = 0, which has no error.
  void note_error(std::size_t i, T x, T z) {
    if (x == z) return;
    ++changes_;
    const double product = std::abs(static_cast<double>(z) - static_cast<double>(x));
    const double unit = 1.001 * std::numeric_limits<T>::epsilon() / 2;
    errors_[i] += unit * (std::abs(static_cast<double>(z)) + product);
  }

  at::Tensor x_;
  std::vector<T> start_;
  std::vector<double> errors_;  // at most, of all mixes
  int changes_ = 0;
  std::unique_ptr<Exchange> exchange_;
};

template <typename T>
void expect_average_kept(const std::vector<Phase>& phases, double gamma) {
  constexpr int kWorkers = 4;
  Post post;
  std::deque<Copy<T>> copies;
  for (int rank = 0; rank < kWorkers; ++rank)
    copies.emplace_back(post, rank, kWorkers, phases, gamma);
  int changes = 0;
  for (std::int64_t step = 1; step <= kManyMixes; ++step) {
    for (Copy<T>& copy : copies) copy.start(step);
    for (Copy<T>& copy : copies) copy.mix();
    if (step > kManyMixes / 2) changes += copies[1].changes();
  }
  EXPECT_GT(changes,
            kManyMixes / 2);  // copies never become equal, and so there is something to keep
  for (std::size_t i = 0; i < kElements; ++i) {
    long double moved = 0, error = 0;
    for (const Copy<T>& copy : copies) {
      moved += static_cast<long double>(copy.end_of(i)) - copy.start_of(i);
      error += copy.error_of(i);
    }
    EXPECT_LE(std::abs(moved), error) << "element " << i;
  }
}

TEST(ModuloAverage, IsKeptByPairs) {
  const std::vector<Phase> ring = make_topology("ring", 4, 1);
  expect_average_kept<float>(ring, 1);
  expect_average_kept<double>(ring, 0.3);
}

TEST(ModuloAverage, IsKeptByEdgesOfThree) {
  const std::vector<Phase> threes = {{{{0, 1, 2}, 1.0 / 3}, {{3}, 1.0}},
                                     {{{1, 2, 3}, 0.5}, {{0}, 1.0}}};
  expect_average_kept<float>(threes, 0.3);
  expect_average_kept<double>(threes, 1);
}

}  // namespace
}  // namespace decent
