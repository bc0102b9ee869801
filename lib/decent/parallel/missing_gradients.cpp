#include "decent/parallel/missing_gradients.h"

#include <algorithm>
#include <utility>

#include "decent/core/text.h"

namespace decent {

std::string no_gradient_warning(std::int64_t step, const std::vector<std::string>& parameters,
                                const std::string& consequence) {
  std::vector<std::string> quoted;
  for (const std::string& name : parameters) quoted.push_back("'" + name + "'");
  return "step " + std::to_string(step) + " gave no gradient to " + join(quoted) + consequence;
}

std::string without_gradient(const std::vector<Phase>& phases) {
  const auto mixes = [](const Phase& phase) {
    return std::any_of(phase.begin(), phase.end(),
                       [](const Edge& edge) { return edge.ranks.size() > 1; });
  };
  return std::any_of(phases.begin(), phases.end(), mixes)
             ? ": averaged with the neighbours, but not updated, in such steps"
             : ": not updated in such steps";
}

std::optional<std::string> MissingGradients::take_warning(const Replica& replica,
                                                          std::int64_t step) {
  std::vector<std::string> fresh;
  for (const std::size_t p : std::exchange(seen_, {})) {
    if (warned_.insert(p).second) fresh.push_back(replica.parameters()[p].first);
  }
  if (fresh.empty()) return std::nullopt;
  return no_gradient_warning(step, fresh, consequence_);
}

}  // namespace decent
