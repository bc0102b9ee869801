#include "decent/data/images/listing.h"

#include <algorithm>
#include <array>
#include <utility>

namespace decent {

bool ends_in_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
    return name.size() > ending.size() &&
           std::equal(
               ending.begin(), ending.end(), name.end() - std::ssize(ending),
               [](char wanted, char c) { return wanted == (c >= 'A' && c <= 'Z' ? c | 0x20 : c); });
  });
}

bool is_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 8> kRead = {".jpg", ".jpeg", ".jpe",  ".jfif",
                                                     ".jif", ".png",  ".apng", ".webp"};
  return ends_in_any(name, kRead);
}

void ImageListing::add(std::string_view file, std::int64_t label) {
  names_ += file;
  ends_.push_back(names_.size());
  labels_.push_back(label);
}

std::string_view ImageListing::name(std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(names_).substr(begin, ends_[i] - begin);
}

std::filesystem::path ImageListing::file(std::int64_t index) const { return folder_ / name(index); }

}  // namespace decent
