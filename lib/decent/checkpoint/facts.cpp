#include "decent/checkpoint/facts.h"

#include <algorithm>
#include <map>

namespace decent {

std::string value_of(const Facts& facts, std::string_view topic) {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const auto& fact) { return fact.first == topic; });
  return found == facts.end() ? std::string() : found->second;
}

std::vector<FactDifference> differences(const Facts& here, const Facts& there) {
  const std::map<std::string_view, std::string_view> ours(here.begin(), here.end());
  const std::map<std::string_view, std::string_view> theirs(there.begin(), there.end());
  std::vector<FactDifference> result;
  for (const auto& [topic, value] : here) {
    const auto found = theirs.find(topic);
    if (found == theirs.end()) {
      result.push_back({topic, value, std::nullopt});
    } else if (found->second != value) {
      result.push_back({topic, value, std::string(found->second)});
    }
  }
  for (const auto& [topic, value] : there) {
    if (!ours.contains(topic)) result.push_back({topic, std::nullopt, value});
  }
  return result;
}

bool contradict(const Facts& one, const Facts& other) {
  const std::vector<FactDifference> all = differences(one, other);
  return std::any_of(all.begin(), all.end(),
                     [](const FactDifference& each) { return each.here && each.there; });
}

std::string shorten(const std::string& value) {
  constexpr std::size_t kMaxValueBytes = 80;
  return value.size() <= kMaxValueBytes ? value : value.substr(0, kMaxValueBytes) + "..";
}

std::string first_lines(const std::vector<std::string>& lines) {
  constexpr std::size_t kMaxLines = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) text += "\n  " + lines[i];
  if (lines.size() > kMaxLines)
    text += "\n  and " + std::to_string(lines.size() - kMaxLines) + " more";
  return text;
}

}  // namespace decent
