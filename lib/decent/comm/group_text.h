#pragma once
// Wording of messages about groups of workers, the same for every backend.

#include <exception>
#include <string>
#include <vector>

namespace decent {

/// The first line of an error. LibTorch's errors carry a C++ stack trace from the second line on.
inline std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

/// "0,2,3", in the order given.
inline std::string rank_list(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

}  // namespace decent
