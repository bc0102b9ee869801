#include "decent/parallel/missing_gradients.h"

#include <utility>

#include "decent/core/text.h"

namespace decent {

std::string no_gradient_warning(std::int64_t step, const std::vector<std::string>& parameters) {
  std::vector<std::string> quoted;
  for (const std::string& name : parameters) quoted.push_back("'" + name + "'");
  return "step " + std::to_string(step) + " gave no gradient to " + join(quoted) +
         ": averaged with the neighbours, but not updated, in such steps";
}

void MissingGradients::look_at(const Replica& replica, std::size_t bucket) {
  for (const std::size_t p : replica.buckets()[bucket].parameters) {
    if (!replica.parameters()[p].second.grad().defined()) seen_.insert(p);
  }
}

std::optional<std::string> MissingGradients::take_warning(const Replica& replica,
                                                          std::int64_t step) {
  std::vector<std::string> fresh;
  for (const std::size_t p : std::exchange(seen_, {})) {
    if (warned_.insert(p).second) fresh.push_back(replica.parameters()[p].first);
  }
  if (fresh.empty()) return std::nullopt;
  return no_gradient_warning(step, fresh);
}

}  // namespace decent
