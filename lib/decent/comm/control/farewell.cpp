#include "decent/comm/control/farewell.h"

#include <algorithm>
#include <utility>

namespace decent {

Farewell::Farewell(int rank, std::size_t workers)
    : rank_(rank), workers_(static_cast<int>(workers)), claims_(workers) {}

std::vector<int> Farewell::left() const {
  std::vector<int> left;
  for (int rank = 0; rank < workers_; ++rank) {
    if (!is_lost(rank)) left.push_back(rank);
  }
  return left;
}

std::optional<Farewell::Claim> Farewell::lose(int rank, LossKind kind, const std::string& reason,
                                              std::int64_t step) {
  if (!lost_.insert(rank).second) return std::nullopt;
  if (kind == LossKind::silent) silent_.insert(rank);
  if (reason_.empty()) reason_ = reason;
  return claims_[static_cast<std::size_t>(rank_)] = Claim{.lost = lost_, .step = step};
}

void Farewell::claims(int rank, Claim claim) {
  claims_.at(static_cast<std::size_t>(rank)) = std::move(claim);
}

bool Farewell::settled() const {
  return begun() && std::ranges::all_of(left(), [this](int rank) {
           const auto& claim = claims_[static_cast<std::size_t>(rank)];
           return claim && claim->lost == lost_;
         });
}

std::int64_t Farewell::last_step() const {
  std::int64_t last = 0;
  for (const int rank : left()) {
    const auto& claim = claims_[static_cast<std::size_t>(rank)];
    if (claim) last = std::max(last, claim->step);
  }
  return last;
}

std::vector<int> Farewell::late() const {
  std::vector<int> late = left();
  std::erase_if(late, [this](int rank) { return arrived_.contains(rank); });
  return late;
}

int Farewell::speaker() const { return left().front(); }

bool Farewell::saves() const {
  const std::vector<int> here = left();
  if (here.size() != silent_.size()) return here.size() > silent_.size();
  return here.front() < *silent_.begin();
}

}  // namespace decent
