#include "decent/data/images/listing.h"

#include <utility>

namespace decent {

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
