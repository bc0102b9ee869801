#include "decent/data/transforms/image_size.h"

#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

constexpr double kMostSide = 32768;  // of a side

}  // namespace

OptionKey size_key(std::string meaning) {
  return {.name = "size",
          .type = OptionType::integers,
          .meaning = std::move(meaning),
          .range = within(1, kMostSide)};
}

ImageSize image_size(const std::vector<std::int64_t>& size, const std::string& who) {
  if (size.size() == 1) return {size[0], size[0]};
  if (size.size() == 2) return {size[0], size[1]};
  throw UserError(who + ": size: expected n or [height, width], not " +
                  counted(static_cast<std::int64_t>(size.size()), "value"));
}

ImageSize with_shorter_side(ImageSize size, std::int64_t shorter) {
  if (size.width <= size.height) return {shorter * size.height / size.width, shorter};
  return {shorter, shorter * size.width / size.height};
}

}  // namespace decent
