#pragma once
// The workers that train together, as one of them sees them. All code that exchanges, evaluates,
// saves or agrees while a run trains is given a Team.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/comm/world.h"
#include "decent/core/membership.h"

namespace decent {

class Team {
 public:
  /// All workers of `world`, which must outlive the team, connected by `communicator`
  /// (World::communicator).
  Team(World& world, std::shared_ptr<Communicator> communicator)
      : world_(&world), communicator_(std::move(communicator)) {}

  const Membership& membership() const { return world_->membership(); }
  /// The group of the members: the member at place i has rank i in it.
  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }
  Control& control() const { return world_->control(); }

  Member member() const { return world_->member(); }
  /// This worker's rank, as the launcher counts.
  int rank() const { return world_->launch().rank; }
  /// This worker's place among the members, and the number of members.
  int place() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }

  /// The place of the member that prints and writes for all.
  static constexpr int kSpeaker = 0;
  bool speaks() const { return place() == kSpeaker; }

  /// See World for these. The templates need gather.h.
  void agree(const std::string& name, const std::function<void()>& stage) const {
    world_->agree(name, stage);
  }
  template <StageWithValue Stage>
  std::vector<ValueOf<Stage>> agree(const std::string& name, Stage stage) const {
    return world_->agree(name, std::move(stage));
  }
  std::vector<Outcome> attempt(const std::string& name, const std::function<void()>& stage) const {
    return world_->attempt(name, stage);
  }
  template <StageWithValue Stage>
  std::vector<Attempt<ValueOf<Stage>>> attempt(const std::string& name, Stage stage) const {
    return world_->attempt(name, std::move(stage));
  }
  template <StageWithValue Stage>
  std::vector<Attempt<ValueOf<Stage>>> attempt_of_survivors(const std::string& name,
                                                            Stage stage) const {
    return world_->attempt_of_survivors(name, std::move(stage));
  }
  template <typename T>
  std::vector<T> gather(const std::string& name, const T& own) const {
    return world_->gather(name, own);
  }

 private:
  World* world_;
  std::shared_ptr<Communicator> communicator_;
};

}  // namespace decent
