#include "decent/pt2/analyse/target.h"

#include <utility>

namespace decent::pt2 {
namespace {

// Removes the text before the first dot from `text` and returns it; all of it if there is no dot.
std::string take_part(std::string_view& text) {
  const std::size_t dot = text.find('.');
  std::string part(text.substr(0, dot));
  text = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  return part;
}

}  // namespace

Target parse_target(std::string_view text) {
  constexpr std::string_view kOperators = "torch.ops.";
  if (text.starts_with(kOperators)) text.remove_prefix(kOperators.size());
  Target target;
  target.library = take_part(text);
  target.name = take_part(text);
  target.overload = text == "default" ? "" : std::string(text);
  return target;
}

}  // namespace decent::pt2
