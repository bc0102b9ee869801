#include "decent/comm/task_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace decent {
namespace {

TEST(TaskThread, DoesOneThingAfterAnother) {
  TaskThread thread;
  std::vector<int> done;
  std::promise<void> end;
  for (int i = 0; i < 100; ++i) thread.post([&done, i] { done.push_back(i); });
  thread.post([&end] { end.set_value(); });
  end.get_future().get();
  ASSERT_EQ(done.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST(TaskThread, DropsWhatHasNotBegunWhenItEnds) {
  std::promise<void> begun, may_end, ended;
  auto dropped = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = dropped;
  {
    TaskThread thread;
    thread.post([&] {
      begun.set_value();
      may_end.get_future().get();
      ended.set_value();
    });
    thread.post([dropped] { ADD_FAILURE() << *dropped; });
    dropped.reset();
    begun.get_future().get();
  }  // though the first one is under way
  EXPECT_TRUE(watch.expired());
  may_end.set_value();
  ended.get_future().get();
}

TEST(TaskThread, MayEndInATaskOfItsOwn) {
  auto thread = std::make_shared<TaskThread>();
  std::promise<void> released;
  auto end = std::make_shared<std::promise<void>>();
  auto over = end->get_future();
  thread->post([thread, &released, end]() mutable {
    released.get_future().get();
    thread.reset();  // the last one
    end->set_value();
  });
  thread.reset();
  released.set_value();
  over.get();
}

}  // namespace
}  // namespace decent
