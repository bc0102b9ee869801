#include "decent/model/weights/state_dict.h"

#include <algorithm>
#include <array>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_tensor.h"

namespace decent {
namespace {

using pickle::Entries;
using pickle::Pickle;
using pickle::Ref;

// The keys under which checkpoints of training programs have their state_dict; the first that
// exists counts.
constexpr std::array<std::string_view, 4> kStateDictKeys = {"state_dict", "model", "module",
                                                            "model_state_dict"};

// A tensor with several names counts as several.
constexpr std::size_t kMaxTensors = 1'000'000;

const char* const kHowToSave =
    "From Python, save the weights alone: torch.save(model.state_dict(), \"weights.pt\")";

// Python 2 writes OrderedDict as a list of pairs.
std::optional<Entries> entries_of_pairs(const Pickle& pickle, const pickle::Object& object) {
  const auto* arguments = pickle.get<pickle::Tuple>(object.arguments);
  if (arguments == nullptr || arguments->items.size() != 1) return std::nullopt;
  const auto* pairs = pickle.get<pickle::List>(arguments->items.front());
  if (pairs == nullptr) return std::nullopt;
  Entries entries;
  for (const Ref item : pairs->items) {
    const auto* pair = pickle.get<pickle::List>(item);
    if (pair == nullptr || pair->items.size() != 2) return std::nullopt;
    entries.emplace_back(pair->items[0], pair->items[1]);
  }
  return entries;
}

bool is_ordered_dict(const Pickle& pickle, const pickle::Object& object) {
  const auto* global = pickle.get<pickle::Global>(object.callee);
  return global != nullptr && global->module == "collections" && global->name == "OrderedDict";
}

std::size_t count_tensors(const Pickle& pickle, const Entries& entries) {
  return static_cast<std::size_t>(std::count_if(
      entries.begin(), entries.end(), [&](const auto& e) { return is_tensor(pickle, e.second); }));
}

std::optional<Ref> find(const Pickle& pickle, const Entries& entries, std::string_view key) {
  std::optional<Ref> found;
  for (const auto& [name, value] : entries) {
    const auto* text = pickle.get<pickle::Text>(name);
    if (text != nullptr && text->text == key) found = value;
  }
  return found;
}

// Throws UserError: says what is under the keys of kStateDictKeys instead of a state_dict, or that
// nothing is.
[[noreturn]] void refuse(const TorchFile& file, const Entries& entries) {
  const Pickle& pickle = file.pickle;
  for (const std::string_view place : kStateDictKeys) {
    const auto value = find(pickle, entries, place);
    if (!value || entries_of(pickle, *value)) continue;
    throw UserError(file.what + " has under '" + std::string(place) + "' " +
                    kind_of(pickle, *value) + ", not a state_dict.\n" + kHowToSave);
  }
  std::vector<std::string> keys;
  for (const auto& [name, value] : entries) {
    const auto* text = pickle.get<pickle::Text>(name);
    if (text != nullptr && keys.size() < 8) keys.push_back(in_quotes(text->text));
  }
  throw UserError(
      file.what + " holds no state_dict, neither by itself nor under '" +
      join(std::vector<std::string>(kStateDictKeys.begin(), kStateDictKeys.end()), "', '") +
      "'.\nIt has: " + (keys.empty() ? "nothing" : join(keys)) + ".\n" + kHowToSave);
}

Entries find_state_dict(const TorchFile& file) {
  const Pickle& pickle = file.pickle;
  const auto root = entries_of(pickle, pickle.root);
  if (!root) {
    throw UserError(file.what + " holds " + kind_of(pickle, pickle.root) + ", not a state_dict.\n" +
                    kHowToSave);
  }
  if (!root->empty() && count_tensors(pickle, *root) == root->size()) return *root;
  for (const std::string_view place : kStateDictKeys) {
    const auto value = find(pickle, *root, place);
    auto entries = value ? entries_of(pickle, *value) : std::nullopt;
    if (entries && count_tensors(pickle, *entries) > 0) return *entries;
  }
  // If most entries are tensors, later errors name the others.
  if (!root->empty() && 2 * count_tensors(pickle, *root) >= root->size()) return *root;
  refuse(file, *root);
}

}  // namespace

std::optional<Entries> entries_of(const Pickle& pickle, Ref ref) {
  if (const auto* dict = pickle.get<pickle::Dict>(ref)) return dict->entries;
  const auto* object = pickle.get<pickle::Object>(ref);
  if (object == nullptr) return std::nullopt;
  if (!object->entries.empty()) return object->entries;  // of a class derived from a dictionary
  if (!is_ordered_dict(pickle, *object)) return std::nullopt;
  const auto pairs = entries_of_pairs(pickle, *object);
  return pairs ? pairs : Entries{};
}

StoredTensors read_state_dict(const TorchFile& file) {
  StoredTensors tensors;
  const Entries entries = find_state_dict(file);
  if (entries.size() > kMaxTensors) throw UserError(file.what + " has too many tensors");
  for (const auto& [key, value] : entries) {
    const auto* name = file.pickle.get<pickle::Text>(key);
    if (name == nullptr) {
      throw UserError(file.what + ": a name in its state_dict is " + kind_of(file.pickle, key) +
                      ", not a text");
    }
    check_name(file, name->text);
    const std::string text(name->text);
    tensors[text] = read_tensor(file, value, text);
  }
  return tensors;
}

}  // namespace decent
