#include "decent/config/extends.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "decent/config/environment.h"
#include "decent/config/keys.h"
#include "decent/config/scalars.h"
#include "decent/config/schema.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent::config {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtends = "extends";

// What merging has to know of the keys of recipes.
class Keys {
 public:
  explicit Keys(const Names& names) : keys_(recipe_keys(names)) {
    for (const NamedOptions& format : names.formats)
      source_table(format).describe("", names, keys_of_sources_);
  }

  // Whether the key is one of the recipe, a section of it, or inside of a key whose value has keys
  // of its own (a source, a custom topology), which depend on other values.
  bool may_be_key(const std::string& path) const {
    return std::any_of(keys_.begin(), keys_.end(), [&](const KeyInfo& key) {
      return key.name == path || key.name.starts_with(path + ".") ||
             path.starts_with(key.name + ".");
    });
  }

  bool has_null_as_value(const std::string& path) const {
    const auto takes_null = [](const KeyInfo& key) { return key.type.ends_with(" or null"); };
    if (const auto key = find_key(path, keys_)) return takes_null(*key);
    const std::string in_source =
        path.starts_with("data.") ? path.substr(path.find('.', 5) + 1) : "";
    return std::any_of(keys_of_sources_.begin(), keys_of_sources_.end(), [&](const KeyInfo& key) {
      return key.name == in_source && takes_null(key);
    });
  }

 private:
  std::vector<KeyInfo> keys_;
  std::vector<KeyInfo> keys_of_sources_;  // of any format
};

void merge(Value& into, Value from, const std::string& path, const Keys& keys);

// The key `from` on top of the entry of the same key in the mapping `into`, if there is one.
void merge_entry(Value& into, Entry from, const std::string& path, const Keys& keys) {
  const auto found = std::find_if(into.entries.begin(), into.entries.end(),
                                  [&](const Entry& entry) { return entry.key == from.key; });
  const bool exists = found != into.entries.end();
  const bool removes = from.value.kind == Value::Kind::null && !keys.has_null_as_value(path);
  if (removes && (exists || keys.may_be_key(path))) {
    std::erase_if(into.entries, [&](const Entry& entry) { return entry.key == from.key; });
    return;
  }
  Entry& entry =
      exists ? *found : into.entries.emplace_back(Entry{.key = from.key, .where = {}, .value = {}});
  entry.where = from.where;
  merge(entry.value, std::move(from.value), path, keys);
}

void merge(Value& into, Value from, const std::string& path, const Keys& keys) {
  if (from.kind != Value::Kind::mapping) {
    into = std::move(from);
    return;
  }
  if (into.kind != Value::Kind::mapping) {
    into = Value{};
    into.kind = Value::Kind::mapping;
  }
  into.where = from.where;
  std::set<std::string> seen;
  for (Entry& entry : from.entries) {
    // A key that stands twice in one file is kept twice, so that it is reported.
    if (!seen.insert(entry.key).second) {
      into.entries.push_back(std::move(entry));
    } else {
      const std::string inside = dotted(path, entry.key);
      merge_entry(into, std::move(entry), inside, keys);
    }
  }
}

class Extender {
 public:
  Extender(const Names& names, const Variables& environment, Mistakes& mistakes)
      : keys_(names), environment_(environment), mistakes_(mistakes) {}

  // Makes the whole recipe from the document of a file.
  void extend(Value& root, const fs::path& file) {
    const Entry* entry = root.find(kExtends);
    if (entry == nullptr) return;
    const Entry given = *entry;
    for (const Entry& each : root.entries) {
      if (each.key == kExtends && !(each.where == given.where))
        mistakes_.add(each.where, kExtends, "duplicate key");
    }
    std::erase_if(root.entries, [](const Entry& each) { return each.key == kExtends; });
    open_.push_back(file);
    Value whole;
    whole.kind = Value::Kind::mapping;
    for (Value& named : files_named(given)) {
      if (auto text = named_file(named)) add(whole, file.parent_path() / *text, named.where);
    }
    open_.pop_back();
    merge(whole, std::move(root), "", keys_);
    root = std::move(whole);
  }

 private:
  static std::vector<Value> files_named(const Entry& given) {
    if (given.value.kind == Value::Kind::list) return given.value.items;
    return {given.value};
  }

  std::optional<std::string> named_file(Value& value) {
    expand_environment(value, environment_, mistakes_, kExtends);
    if (value.kind == Value::Kind::broken) return std::nullopt;
    if (value.kind == Value::Kind::scalar && !value.text.empty()) return value.text;
    mistakes_.add(value.where, kExtends, "expected a path or a list of paths, got " + shown(value));
    return std::nullopt;
  }

  void add(Value& whole, const fs::path& file, Where named_at) {
    const std::string problem = problem_with(file);
    if (!problem.empty()) {
      mistakes_.add(named_at, kExtends, problem);
      return;
    }
    const int origin = mistakes_.add_file(file);
    Value root = parse_mapping(read_text(file), origin, mistakes_);
    if (root.kind != Value::Kind::mapping) return;
    extend(root, file);
    merge(whole, std::move(root), "", keys_);
  }

  // Why the file cannot be read here, or an empty text.
  std::string problem_with(const fs::path& file) {
    const std::string shown_file = "'" + abbreviate(file.string(), 4096) + "'";
    std::error_code failed;
    const fs::file_status status = fs::status(file, failed);
    if (!fs::exists(status)) return shown_file + " does not exist" + near_files(file);
    if (!fs::is_regular_file(status)) return shown_file + " is no file";
    const auto same = [&](const fs::path& other) { return fs::equivalent(file, other, failed); };
    const auto again = std::find_if(open_.begin(), open_.end(), same);
    if (again != open_.end()) return cycle(again, file);
    if (open_.size() > kMostExtended) {
      return "recipes extend one another more than " + std::to_string(kMostExtended) + " deep";
    }
    if (++files_ > kMostExtendedFiles) {
      return "the recipe reads more than " + std::to_string(kMostExtendedFiles) + " others";
    }
    try {
      const MappedFile readable(file);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  // "; did you mean 'base.yaml'?"
  static std::string near_files(const fs::path& file) {
    std::vector<std::string> names;
    std::error_code failed;
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
      if (it->path().extension() == ".yaml" || it->path().extension() == ".yml")
        names.push_back(it->path().filename().string());
    return suggestion(file.filename().string(), names);
  }

  std::string cycle(std::vector<fs::path>::const_iterator first, const fs::path& file) const {
    std::string text = "recipes extend one another in a circle: ";
    for (auto each = first; each != open_.end(); ++each)
      text += abbreviate(each->string(), 200) + " -> ";
    return text + abbreviate(file.string(), 200);
  }

  Keys keys_;
  const Variables& environment_;
  Mistakes& mistakes_;
  std::vector<fs::path> open_;  // the files that are being extended, from the outermost
  std::size_t files_ = 0;       // that were read
};

}  // namespace

Value parse_mapping(const std::string& text, int origin, Mistakes& mistakes) {
  Value root;
  root.kind = Value::Kind::broken;
  try {
    Value parsed = parse_document(text, origin);
    if (parsed.kind == Value::Kind::mapping) return parsed;
    const bool is_empty = parsed.kind == Value::Kind::null;
    mistakes.add(parsed.where, "",
                 is_empty
                     ? "the recipe is empty; expected at least model and data"
                     : "expected a recipe (sections such as model and data), got " + shown(parsed));
  } catch (const SyntaxMistake& mistake) {
    mistakes.add(mistake.where, "", mistake.what());
  }
  return root;
}

void extend(Value& root, const fs::path& file, const Names& names, const Variables& environment,
            Mistakes& mistakes) {
  Extender(names, environment, mistakes).extend(root, file);
}

}  // namespace decent::config
