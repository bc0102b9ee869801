#include "decent/data/learned.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "decent-train data";
constexpr int kVersion = 1;

struct ValueWriter {
  Json operator()(std::monostate) const { return nullptr; }
  // A path is a place of data, which a run does not learn.
  Json operator()(const std::filesystem::path&) const { return nullptr; }
  Json operator()(const Paths&) const { return nullptr; }
  template <class T>
  Json operator()(const T& value) const {
    return value;
  }
};

Json json_of(const OptionValue& value) { return std::visit(ValueWriter{}, value); }

Json json_of(const Options& options) {
  Json object = Json::object();
  for (const auto& [name, value] : options.all()) object[name] = json_of(value);
  return object;
}

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw UserError("'" + file + "' is damaged: " + what);
}

template <class T>
std::vector<T> list_in(const Json& value) {
  return value.get<std::vector<T>>();
}

Json json_of(const std::vector<NamedValues>& transforms) {
  Json list = Json::array();
  for (const NamedValues& each : transforms)
    list.push_back({{"name", each.name}, {"keys", json_of(each.options)}});
  return list;
}

OptionValue value_of(const Json& value, const std::string& file) {
  const auto all = [&](const auto& is) { return std::all_of(value.begin(), value.end(), is); };
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    if (all([](const Json& each) { return each.is_string(); })) return list_in<std::string>(value);
    if (all([](const Json& each) { return each.is_number_integer(); }))
      return list_in<std::int64_t>(value);
    if (all([](const Json& each) { return each.is_number(); })) return list_in<double>(value);
  }
  fail(file, "a value is neither a number, a text nor a list of such");
}

Options options_in(const Json& object, const char* key, const std::string& file) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) fail(file, std::string(key) + " is no object");
  Options options;
  for (const auto& [name, value] : found->items()) options.set(name, value_of(value, file));
  return options;
}

std::string text_in(const Json& object, const char* key, const std::string& file) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) fail(file, std::string(key) + " is no text");
  return found->get<std::string>();
}

// Nothing if there is no such key: not every run has data.eval_transforms, and older versions wrote
// no transforms.
std::optional<std::vector<NamedValues>> transforms_in(const Json& object, const char* key,
                                                      const std::string& file) {
  std::vector<NamedValues> transforms;
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (!found->is_array()) fail(file, std::string(key) + " is no list");
  for (const Json& each : *found) {
    if (!each.is_object()) fail(file, "a transform is no object");
    transforms.push_back({text_in(each, "name", file), options_in(each, "keys", file)});
  }
  return transforms;
}

std::vector<std::string> texts_in(const Json& object, const char* key, const std::string& file) {
  const auto found = object.find(key);
  const bool good =
      found != object.end() && found->is_array() &&
      std::all_of(found->begin(), found->end(), [](const Json& each) { return each.is_string(); });
  if (!good) fail(file, std::string(key) + " is no list of texts");
  return list_in<std::string>(*found);
}

std::string written_name(const std::string& name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (is_utf8(name)) return name;
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return text;
}

}  // namespace

std::string print_learned(const LearnedData& data) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"train",
                {{"format", data.format},
                 {"keys", json_of(data.keys)},
                 {"learned", json_of(data.learned)},
                 {"transforms", json_of(data.transforms)},
                 {"classes", written_names(data.classes)}}}};
  if (data.eval_transforms) json["eval_transforms"] = json_of(*data.eval_transforms);
  if (data.normalizes) json["normalizes"] = true;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string print_if_whole(const LearnedData& data) {
  return data.is_whole() ? print_learned(data) : std::string();
}

LearnedData parse_learned(std::string_view text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) fail(file, "it is no JSON object");
  if (text_in(json, "format", file) != kFormat) fail(file, "it is not of decent-train");
  const auto version = json.find("version");
  if (version == json.end() || *version != kVersion) {
    throw UserError("'" + file + "' is of another version of the format than this program reads, " +
                    std::to_string(kVersion));
  }
  const auto train = json.find("train");
  if (train == json.end() || !train->is_object()) fail(file, "train is no object");
  return {
      .format = text_in(*train, "format", file),
      .keys = options_in(*train, "keys", file),
      .learned = options_in(*train, "learned", file),
      .transforms = transforms_in(*train, "transforms", file).value_or(std::vector<NamedValues>()),
      .eval_transforms = transforms_in(json, "eval_transforms", file),
      .classes = texts_in(*train, "classes", file),
      .normalizes = json.value("normalizes", Json()) == true,
      .where = "'" + file + "'"};
}

std::vector<std::string> written_names(const std::vector<std::string>& names) {
  std::vector<std::string> written;
  for (const std::string& name : names) written.push_back(written_name(name));
  return written;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<std::int64_t> number_in_label(std::string_view label) {
  label = trimmed(label);
  std::int64_t value = 0;
  const char* end = label.data() + label.size();
  const auto read = std::from_chars(label.data(), end, value);
  if (label.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

std::optional<std::int64_t> class_of(std::string_view label,
                                     const std::vector<std::string>& classes) {
  const auto number_of = [&](const auto& is) -> std::optional<std::int64_t> {
    const auto found = std::find_if(classes.begin(), classes.end(), is);
    if (found == classes.end()) return std::nullopt;
    return found - classes.begin();
  };
  if (const auto same = number_of([&](const std::string& each) { return each == label; }))
    return same;
  const std::string written = written_name(std::string(label));
  const std::string_view name = trimmed(written);
  if (const auto same = number_of([&](const std::string& each) { return trimmed(each) == name; }))
    return same;
  const auto value = number_in_label(name);
  if (!value) return std::nullopt;
  return number_of(
      [&](const std::string& each) { return number_in_label(trimmed(each)) == value; });
}

void sort_classes(std::vector<std::string>& classes, bool bytewise) {
  std::sort(classes.begin(), classes.end());
  const bool all_numbers = std::all_of(classes.begin(), classes.end(), [](const std::string& each) {
    return number_in_label(each).has_value();
  });
  if (bytewise || !all_numbers) return;
  std::map<std::int64_t, std::string> by_value;
  for (const std::string& each : classes) {
    const auto [place, is_new] = by_value.emplace(*number_in_label(each), each);
    if (is_new) continue;
    throw UserError("the classes " + in_quotes(place->second) + " and " + in_quotes(each) +
                    " are the same number; rename one, or say class_order: bytewise");
  }
  classes.clear();
  for (const auto& [value, name] : by_value) classes.push_back(name);
}

std::optional<std::string> note_on_order(const std::vector<std::string>& classes) {
  constexpr std::size_t kShown = 4;
  if (std::is_sorted(classes.begin(), classes.end())) return std::nullopt;
  return "classes 0, 1, .. are " + some_of(classes, kShown) +
         ": names that are whole numbers are in the order of their values (class_order: bytewise "
         "takes that of their bytes)";
}

bool is_missing_label(std::string_view label) {
  constexpr std::array<std::string_view, 7> kMissing = {"",    "?",    "na",  "n/a",
                                                        "nan", "null", "none"};
  label = trimmed(label);
  return std::any_of(kMissing.begin(), kMissing.end(), [&](std::string_view each) {
    return std::equal(label.begin(), label.end(), each.begin(), each.end(), [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a | 0x20) : a) == b;
    });
  });
}

}  // namespace decent
