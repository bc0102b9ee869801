#include "decent/onnx/format/splice.h"

#include <algorithm>
#include <cassert>

#include "decent/onnx/format/wire.h"

namespace decent::onnx {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class Splicer {
 public:
  Splicer(Input& file, std::span<const Edit> edits, Spliced& result)
      : file_(file), edits_(edits), result_(result) {}

  // Appends the content of a message from `begin` to `end`, with the edits in it.
  void message(ByteRange content) {
    const Message fields_of(file_, content, "message");
    std::uint64_t copied = content.begin;
    for (Fields fields(fields_of); next_ < edits_.size();) {
      if (edits_[next_].field.begin >= content.end) break;
      const Field* field = fields.next();
      assert(field != nullptr && "an edit is of a field");
      if (edits_[next_].field.begin >= field->range.end) continue;
      copy({copied, field->range.begin});
      copied = field->range.end;
      if (edits_[next_].field.begin == field->range.begin) {
        replace(*field);
      } else {
        enter(*field);
      }
    }
    copy({copied, content.end});
  }

 private:
  void replace(const Field& field) {
    const Edit& edit = edits_[next_++];
    assert(edit.field.end == field.range.end && "an edit is of a whole field");
    static_cast<void>(field);
    result_.append(bytes_of(edit.begin));
    result_.append(edit.rest);
  }

  // The tag and length become known, and are put in their place, only after the message that
  // follows them.
  void enter(const Field& field) {
    assert(field.type == WireType::bytes && "an edit is of a field");
    const std::size_t header = result_.pieces.size();
    result_.pieces.emplace_back();
    const std::uint64_t before = result_.size;
    message(field.content);
    const std::uint64_t size = result_.size - before;
    if (size == field.content.size()) {
      result_.pieces[header] =
          file_.bytes.subspan(field.range.begin, field.content.begin - field.range.begin);
    } else {
      std::string& bytes = result_.lengths.emplace_back();
      append_tag(bytes, field.number, WireType::bytes);
      append_varint(bytes, size);
      result_.pieces[header] = bytes_of(bytes);
    }
    result_.size += result_.pieces[header].size();
  }

  void copy(ByteRange range) { result_.append(file_.bytes.subspan(range.begin, range.size())); }

  Input& file_;
  std::span<const Edit> edits_;
  Spliced& result_;
  std::size_t next_ = 0;
};

}  // namespace

void Spliced::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  pieces.push_back(bytes);
  size += bytes.size();
}

void sort_edits(std::vector<Edit>& edits) {
  std::sort(edits.begin(), edits.end(),
            [](const Edit& a, const Edit& b) { return a.field.begin < b.field.begin; });
}

Spliced splice(Input& file, std::span<const Edit> edits) {
  Spliced result;
  Splicer(file, edits, result).message({0, file.bytes.size()});
  return result;
}

}  // namespace decent::onnx
