#pragma once
// Lists of things that have a name: the rows of a table.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

/// The entry called `name`; null if there is none.
template <typename Named>
const Named* find_named(const std::vector<Named>& list, std::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Named& each) { return each.name == name; });
  return found == list.end() ? nullptr : &*found;
}

template <typename Named>
std::vector<std::string> names_in(const std::vector<Named>& list) {
  std::vector<std::string> names;
  for (const Named& each : list) names.emplace_back(each.name);
  return names;
}

}  // namespace decent
