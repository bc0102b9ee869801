#include "decent/data/formats/windows.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

// Writes the ids as int64. `out` need not be aligned.
template <class Id>
void widen(std::span<const Id> ids, std::byte* out) {
  for (const Id id : ids) {
    const auto wide = static_cast<std::int64_t>(id);
    std::memcpy(out, &wide, sizeof wide);
    out += sizeof wide;
  }
}

std::vector<std::int64_t> ends_of(const std::vector<Piece>& pieces) {
  std::vector<std::int64_t> ends;
  for (const Piece& piece : pieces) ends.push_back((ends.empty() ? 0 : ends.back()) + piece.count);
  return ends;
}

template <class Id>
class WindowsSource final : public Source {
 public:
  WindowsSource(Sequence sequence, std::vector<std::int64_t> ends, const Windows& windows,
                std::optional<std::int64_t> vocabulary)
      : sequence_(std::move(sequence)),
        windows_(windows),
        vocabulary_(vocabulary),
        ends_(std::move(ends)),
        size_((ends_.back() - windows.length - 1) / windows.stride + 1),
        fields_{{"x", DType::int64, {windows.length}}, {"y", DType::int64, {windows.length}}} {}

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return size_; }

  std::vector<std::string> notes() const override {
    if (sequence_.note.empty()) return {};
    return {"'" + sequence_.file->path().string() + "': " + sequence_.note};
  }

  void read(std::size_t field, std::span<const std::int64_t> indices,
            std::byte* out) const override {
    assert(field < fields_.size());
    for (const std::int64_t index : indices) {
      assert(index >= 0 && index < size_);
      const std::int64_t first = index * windows_.stride + static_cast<std::int64_t>(field);
      read_ids(first, windows_.length, out);
      out += windows_.length * static_cast<std::int64_t>(sizeof(std::int64_t));
    }
  }

 private:
  // Copies through a buffer that stays in the cache, because a copy out of the file fails cleanly
  // if the file was truncated.
  void read_ids(std::int64_t first, std::int64_t count, std::byte* out) const {
    std::array<Id, 4096> buffer;
    while (count > 0) {
      const std::int64_t left = ends_[piece_of(first)] - first;
      const std::int64_t some = std::min({count, std::ssize(buffer), left});
      const auto ids = std::span(buffer).first(static_cast<std::size_t>(some));
      sequence_.file->copy(byte_of(first), std::as_writable_bytes(ids));
      if (vocabulary_) check(ids, first);
      widen<Id>(ids, out);
      out += some * static_cast<std::int64_t>(sizeof(std::int64_t));
      first += some;
      count -= some;
    }
  }

  // The piece that has the id of that number.
  std::size_t piece_of(std::int64_t id) const {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), id) -
                                    ends_.begin());
  }

  std::size_t byte_of(std::int64_t id) const {
    const std::size_t piece = piece_of(id);
    const std::int64_t first = ends_[piece] - sequence_.pieces[piece].count;
    return sequence_.pieces[piece].begin + static_cast<std::size_t>(id - first) * sizeof(Id);
  }

  // `first` is the number of the first id.
  void check(std::span<const Id> ids, std::int64_t first) const {
    const auto is_known = [most = *vocabulary_](Id id) {
      const auto wide = static_cast<std::int64_t>(id);
      return wide >= 0 && wide < most;
    };
    bool all_known = true;  // without a branch in the loop, which is faster
    for (const Id id : ids) all_known &= is_known(id);
    if (all_known) return;
    const auto wrong = std::find_if_not(ids.begin(), ids.end(), is_known);
    throw UserError(
        "'" + sequence_.file->path().string() + "': byte " +
        std::to_string(byte_of(first + (wrong - ids.begin()))) + ": id " + std::to_string(*wrong) +
        "; a vocabulary of " + std::to_string(*vocabulary_) +
        (static_cast<std::int64_t>(*wrong) < 0 ? " has ids from 0 on" : " has ids below that"));
  }

  Sequence sequence_;
  Windows windows_;
  std::optional<std::int64_t> vocabulary_;
  std::vector<std::int64_t> ends_;  // of each piece: the number of the id behind it
  std::int64_t size_;
  std::vector<Field> fields_;
};

}  // namespace

std::unique_ptr<Source> make_windows_source(Sequence sequence, const Windows& windows,
                                            std::optional<std::int64_t> vocabulary) {
  std::vector<std::int64_t> ends = ends_of(sequence.pieces);
  const std::int64_t count = ends.empty() ? 0 : ends.back();
  if (count <= windows.length) {
    throw UserError("'" + sequence.file->path().string() + "': holds " +
                    counted(count, sequence.type == IdType::uint8 ? "byte" : "token") +
                    ", too few for one sample: length " + std::to_string(windows.length) +
                    " and one more for y");
  }
  const auto make = [&]<class Id>(Id) -> std::unique_ptr<Source> {
    return std::make_unique<WindowsSource<Id>>(std::move(sequence), std::move(ends), windows,
                                               vocabulary);
  };
  switch (sequence.type) {
    case IdType::uint8:
      return make(std::uint8_t{});
    case IdType::uint16:
      return make(std::uint16_t{});
    case IdType::uint32:
      return make(std::uint32_t{});
    case IdType::int16:
      return make(std::int16_t{});
    case IdType::int32:
      return make(std::int32_t{});
    case IdType::int64:
      return make(std::int64_t{});
  }
  __builtin_unreachable();
}

OptionKey length_key() {
  return {.name = "length",
          .type = OptionType::integer,
          .meaning = "Number of ids in a sample; y is x shifted by one.",
          .range = at_least(1)};
}

OptionKey stride_key() {
  return {
      .name = "stride",
      .type = OptionType::integer,
      .meaning =
          "Number of ids from the start of one sample to the start of the next; null: `length`.",
      .fallback = kNull,
      .range = at_least(1)};
}

Windows windows_of(const Options& options) {
  const auto length = options.get<std::int64_t>("length");
  return {.length = length, .stride = options.get_if<std::int64_t>("stride").value_or(length)};
}

}  // namespace decent
