#include "decent/pt2/archive/sample_inputs.h"

#include <map>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/pickle.h"
#include "decent/core/text.h"
#include "decent/core/torch_file.h"
#include "decent/core/torch_tensor.h"
#include "decent/pt2/archive/records.h"

namespace decent::pt2 {
namespace {

using pickle::Ref;

constexpr std::size_t kLongestText =
    1000;  // because a file of a few bytes could refer to one value any number of times

class Reader {
 public:
  explicit Reader(const TorchFile& file) : file_(file) {}

  std::vector<SampleValue> read(const TreeSpec& spec) {
    read(spec, file_.pickle.root);
    return std::move(values_);
  }

 private:
  // The place of the reader: the inputs before it are complete.
  std::string place() const { return "example input " + std::to_string(values_.size()); }

  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError(file_.what + ": " + place() + ": " + reason);
  }
  [[noreturn]] void fail_kind(Ref ref, const std::string& expected) const {
    fail(kind_of(file_.pickle, ref) + " where " + expected + " is expected");
  }

  void read(const TreeSpec& spec, Ref ref) {
    switch (spec.kind) {
      case TreeSpec::Kind::leaf:
        values_.push_back(leaf(ref));
        return;
      case TreeSpec::Kind::tuple:
        return read_items(spec, items_of<pickle::Tuple>(ref, "a tuple"));
      case TreeSpec::Kind::list:
        return read_items(spec, items_of<pickle::List>(ref, "a list"));
      case TreeSpec::Kind::dict:
        return read_entries(spec, entries_of(ref));
      case TreeSpec::Kind::fields:
      case TreeSpec::Kind::other:
        fail("is in a " + in_quotes(spec.type) + ", which only its code can make");
    }
  }

  template <typename Sequence>
  const pickle::Items& items_of(Ref ref, const char* expected) const {
    const auto* sequence = file_.pickle.get<Sequence>(ref);
    if (sequence == nullptr) fail_kind(ref, expected);
    return sequence->items;
  }

  // Also the entries of an OrderedDict, which is a call of its class without arguments.
  const pickle::Entries& entries_of(Ref ref) const {
    if (const auto* dict = file_.pickle.get<pickle::Dict>(ref)) return dict->entries;
    const auto* object = file_.pickle.get<pickle::Object>(ref);
    const auto* type = object ? file_.pickle.get<pickle::Global>(object->callee) : nullptr;
    if (type == nullptr || name_of(*type) != "collections.OrderedDict") {
      fail_kind(ref, "a dictionary");
    }
    return object->entries;
  }

  void check_count(const TreeSpec& spec, std::size_t count) const {
    if (count == spec.children.size()) return;
    fail(counted(static_cast<std::int64_t>(count), "value") + " where the program takes " +
         std::to_string(spec.children.size()));
  }

  void read_items(const TreeSpec& spec, const pickle::Items& items) {
    check_count(spec, items.size());
    for (std::size_t i = 0; i < items.size(); ++i) read(spec.children[i], items[i]);
  }

  // Their order may differ from the program's.
  void read_entries(const TreeSpec& spec, const pickle::Entries& entries) {
    check_count(spec, entries.size());
    std::map<TreeKey, Ref> values;
    for (const auto& [key, value] : entries) {
      if (const auto name = find_key(key)) values[*name] = value;
    }
    for (std::size_t i = 0; i < spec.children.size(); ++i) {
      const auto found = values.find(spec.keys[i]);
      if (found == values.end()) fail("its key is not among those of its dictionary");
      read(spec.children[i], found->second);
    }
  }

  std::optional<TreeKey> find_key(Ref ref) const {
    if (const auto* text = file_.pickle.get<pickle::Text>(ref)) return text_of(*text);
    if (const auto* number = file_.pickle.get<std::int64_t>(ref)) return *number;
    if (const auto* boolean = file_.pickle.get<bool>(ref)) return *boolean;
    return std::nullopt;
  }

  std::string text_of(const pickle::Text& text) const {
    if (text.text.size() > kLongestText) fail("a text of more than 1000 bytes");
    return std::string(text.text);
  }

  SampleValue leaf(Ref ref) const {
    const pickle::Pickle& pickle = file_.pickle;
    if (is_tensor(pickle, ref)) return read_tensor(file_, ref, place());
    if (pickle.get<pickle::None>(ref) != nullptr) return None{};
    if (const auto* value = pickle.get<bool>(ref)) return *value;
    if (const auto* value = pickle.get<std::int64_t>(ref)) return *value;
    if (const auto* value = pickle.get<double>(ref)) return *value;
    if (const auto* value = pickle.get<pickle::Text>(ref)) return text_of(*value);
    fail_kind(ref, "a tensor, a number or a text");
  }

  const TorchFile& file_;
  std::vector<SampleValue> values_;
};

}  // namespace

std::optional<std::vector<SampleValue>> read_sample_inputs(const Archive& archive,
                                                           const ExportedProgram& program) {
  const Records records(archive.file->bytes(), archive.what());
  const std::string name = std::string(kSampleInputsFolder) + program.name + ".pt";
  if (records.find(name) == nullptr) return std::nullopt;
  const std::string_view content = records.content(name);
  const TorchFile file = read_torch_file(std::as_bytes(std::span(content)), records.what_of(name));
  if (file.pickle.get<pickle::None>(file.pickle.root) != nullptr) return std::nullopt;
  return Reader(file).read(program.in_spec);
}

}  // namespace decent::pt2
