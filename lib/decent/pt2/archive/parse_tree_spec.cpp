#include "decent/pt2/archive/parse.h"

#include <optional>
#include <utility>

#include "decent/core/text.h"
#include "decent/pt2/json/document.h"

namespace decent::pt2 {
namespace {

constexpr std::int64_t kProtocol = 1;

std::optional<TreeKey> find_key(Json json) {
  switch (json.kind()) {
    case Json::Kind::text:
      return json.text();
    case Json::Kind::integer:
      return json.integer();
    case Json::Kind::boolean:
      return json.boolean();
    default:
      return std::nullopt;
  }
}

// The keys in a list; nothing if it is no list, or contains something that cannot be a key.
std::optional<std::vector<TreeKey>> find_keys(Json json) {
  if (json.kind() != Json::Kind::list) return std::nullopt;
  std::vector<TreeKey> keys;
  for (const Json item : json.list()) {
    const auto key = find_key(item);
    if (!key) return std::nullopt;
    keys.push_back(*key);
  }
  return keys;
}

// The context of a user's type: its names, as in ModelOutput of transformers, or the names of
// fields that are given and of fields that are None, as in register_dataclass.
std::optional<std::vector<TreeKey>> find_field_names(Json context) {
  if (const auto names = find_keys(context)) return names;
  if (context.kind() != Json::Kind::list || context.size() != 2) return std::nullopt;
  return find_keys(*context.list().begin());
}

class Parser {
 public:
  Parser(const NamedTuples& named_tuples, const std::string& what)
      : named_tuples_(named_tuples), what_(what) {}

  TreeSpec parse(Json json) const {
    TreeSpec spec;
    const auto type = json.find("type");
    for (const Json child : json.at("children_spec").list()) spec.children.push_back(parse(child));
    if (!type) {
      if (!spec.children.empty()) json.fail("has no type, but children");
      return spec;
    }
    spec.type = type->text();
    read_kind(json, spec);
    const bool has_keys = spec.kind == TreeSpec::Kind::dict || spec.kind == TreeSpec::Kind::fields;
    if (has_keys && spec.keys.size() != spec.children.size()) {
      json.fail("has " + std::to_string(spec.children.size()) + " children and " +
                std::to_string(spec.keys.size()) + " names for them");
    }
    return spec;
  }

 private:
  void read_kind(Json json, TreeSpec& spec) const {
    if (spec.type == "builtins.tuple") {
      spec.kind = TreeSpec::Kind::tuple;
    } else if (spec.type == "builtins.list" || spec.type == "collections.deque") {
      spec.kind = TreeSpec::Kind::list;
    } else if (spec.type == "collections.namedtuple") {
      read_named_tuple(json.at("context"), spec);
    } else if (spec.type == "collections.defaultdict") {
      set_keys(find_keys(json.at("context").at("dict_context")), TreeSpec::Kind::dict, spec);
    } else if (const auto context = json.find("context")) {
      const bool is_dict = spec.type == "builtins.dict" || spec.type == "collections.OrderedDict";
      read_context(*context, is_dict ? TreeSpec::Kind::dict : TreeSpec::Kind::fields, spec);
    } else {
      spec.kind = TreeSpec::Kind::other;
    }
  }

  static void set_keys(std::optional<std::vector<TreeKey>> keys, TreeSpec::Kind kind,
                       TreeSpec& spec) {
    spec.kind = keys ? kind : TreeSpec::Kind::other;
    if (keys) spec.keys = std::move(*keys);
  }

  // The context is the name of the type.
  void read_named_tuple(Json context, TreeSpec& spec) const {
    spec.context = context.text();
    const auto found = named_tuples_.find(spec.context);
    spec.kind = found == named_tuples_.end() ? TreeSpec::Kind::other : TreeSpec::Kind::fields;
    if (found != named_tuples_.end()) spec.keys = {found->second.begin(), found->second.end()};
  }

  // The context is JSON in a text, unless the type writes its own form.
  void read_context(Json context, TreeSpec::Kind kind, TreeSpec& spec) const {
    if (context.kind() != Json::Kind::text) {
      spec.kind = TreeSpec::Kind::other;
      return;
    }
    spec.context = context.text();
    const JsonDocument document(spec.context, what_ + ": the context of " + in_quotes(spec.type));
    set_keys(kind == TreeSpec::Kind::dict ? find_keys(document.root())
                                          : find_field_names(document.root()),
             kind, spec);
  }

  const NamedTuples& named_tuples_;
  const std::string& what_;
};

}  // namespace

TreeSpec parse_tree_spec(std::string_view text, const NamedTuples& named_tuples,
                         const std::string& what) {
  const JsonDocument document(text, what);
  const Json root = document.root();
  if (root.size() != 2) root.fail("is no pair of a protocol and a tree");
  auto item = root.list().begin();
  if ((*item).integer() != kProtocol) {
    (*item).fail("is " + std::to_string((*item).integer()) +
                 ", a protocol that is not known; 1 can be read");
  }
  ++item;
  return Parser(named_tuples, what).parse(*item);
}

}  // namespace decent::pt2
