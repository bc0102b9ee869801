#include "decent/data/source.h"

#include <algorithm>
#include <utility>

#include "decent/core/text.h"

namespace decent {

std::optional<std::size_t> Source::field_index(std::string_view name) const {
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == name) return i;
  }
  return std::nullopt;
}

void Source::read_fields(std::span<const std::int64_t> indices,
                         std::span<std::byte* const> outs) const {
  for (std::size_t field = 0; field < outs.size(); ++field) {
    if (outs[field] != nullptr) read(field, indices, outs[field]);
  }
}

void Source::read_one(std::span<const std::size_t> fields, std::int64_t index,
                      std::span<HostArray> sample) const {
  std::vector<std::byte*> outs(sample.size());
  for (const std::size_t field : fields) {
    const Field& its = this->fields()[field];
    sample[field].dtype = its.dtype;
    sample[field].shape = its.shape;
    sample[field].bytes.resize(its.sample_bytes());
    outs[field] = sample[field].bytes.data();
  }
  read_fields({&index, 1}, outs);
}

void SourceOfRows::read(std::size_t field, std::span<const std::int64_t> indices,
                        std::byte* out) const {
  std::vector<std::byte*> outs(fields().size());
  outs.at(field) = out;
  read_fields(indices, outs);
}

void SourceOfRows::read_fields(std::span<const std::int64_t> indices,
                               std::span<std::byte* const> outs) const {
  Source::read_fields(indices, outs);
}

std::int64_t Source::length_of(std::int64_t index) const {
  std::vector<std::size_t> padded;
  for (std::size_t i = 0; i < fields().size(); ++i)
    if (fields()[i].padded()) padded.push_back(i);
  std::vector<HostArray> sample(fields().size());
  if (!padded.empty()) read_one(padded, index, sample);
  std::int64_t length = 0;
  for (const std::size_t field : padded) {
    const std::vector<std::int64_t>& shape = fields()[field].shape;
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == kAnyExtent) length = std::max(length, sample[field].shape[i]);
  }
  return length;
}

HostArray Source::read_one(std::size_t field, std::int64_t index) const {
  std::vector<HostArray> sample(fields().size());
  read_one({&field, 1}, index, sample);
  return std::move(sample[field]);
}

std::string sample_text(const Source& source, std::int64_t sample, const std::string& files) {
  const SampleOrigin origin = source.origin_of(sample);
  std::vector<std::string> place;
  if (!origin.file.empty() || !files.empty())
    place.push_back(origin.file.empty() ? files : "'" + origin.file + "'");
  if (origin.row && origin.row != sample) place.push_back("row " + std::to_string(*origin.row));
  return "sample " + std::to_string(sample) + (place.empty() ? "" : " (" + join(place) + ")");
}

}  // namespace decent
