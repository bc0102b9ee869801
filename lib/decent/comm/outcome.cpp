#include "decent/comm/outcome.h"

#include <algorithm>

#include "decent/core/text.h"

namespace decent {

namespace {

bool failed(const Outcome& outcome) { return outcome.code != ExitCode::done; }

}  // namespace

bool all_done(const std::vector<Outcome>& outcomes) {
  return std::none_of(outcomes.begin(), outcomes.end(), failed);
}

void throw_if_failed(const std::vector<Outcome>& outcomes) {
  const auto first = std::find_if(outcomes.begin(), outcomes.end(), failed);
  if (first == outcomes.end()) return;
  const bool alike = std::all_of(outcomes.begin(), outcomes.end(), [&](const Outcome& outcome) {
    return outcome.code == first->code && outcome.message == first->message;
  });
  if (alike) throw SharedError(first->code, first->message);

  // One mistake gets one message, even if each worker met it in its own data.
  std::vector<std::string> like_first;
  std::vector<std::string> others;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (!failed(outcomes[rank])) continue;
    const bool same =
        outcomes[rank].code == first->code && outcomes[rank].message == first->message;
    (same ? like_first : others).push_back(std::to_string(rank));
  }
  // An error in what only rank 0 looks at (the output folder) needs no rank.
  const bool only_rank_0 = others.empty() && like_first == std::vector<std::string>{"0"};
  std::string message =
      only_rank_0 ? first->message : "rank " + join(like_first) + ": " + first->message;
  if (!others.empty()) message += "\n(failed too: rank " + join(others) + ")";
  throw SharedError(first->code, message);
}

}  // namespace decent
