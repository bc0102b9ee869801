#pragma once
// Python's pickle format, protocols 2 to 5 including protocol 2 as Python 2 wrote it, read without
// running anything. No torch.
//
// A pickle is a program for a small stack machine, whose dangerous instructions import a name and
// call what it names. Here nothing is imported and nothing is called: a name stays a name (Global),
// and a call becomes a record of the function and its arguments (Object). The code that asks for a
// value decides which names and calls it understands.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace decent::pickle {

/// The place of a value in Pickle::values. Values may contain one another, also in circles.
using Ref = std::uint32_t;
using Items = std::vector<Ref>;
using Entries = std::vector<std::pair<Ref, Ref>>;

// Texts are views of the bytes that were parsed.
struct None {};
struct LargeInteger {
  std::string_view bytes;  // little-endian, two's complement, more than 8 of them
};
struct Text {
  std::string_view text;  // UTF-8, or a text of Python 2
};
struct Bytes {
  std::string_view bytes;
};
struct List {
  Items items;
};
struct Tuple {
  Items items;
};
struct Set {
  Items items;
};
struct Dict {
  Entries entries;  // in the order of the file; of equal keys the last counts
};
/// A name that Python would import: "torch._utils" and "_rebuild_tensor_v2".
struct Global {
  std::string_view module;
  std::string_view name;
};
/// A call that Python would make, and what it would then do with the result.
struct Object {
  Ref callee = 0;
  Ref arguments = 0;         // mostly a Tuple
  Items items;               // appended, as to a list
  Entries entries;           // set, as in a dictionary
  std::optional<Ref> state;  // given to __setstate__, or set as attributes
};
/// An object that the program that wrote the file keeps elsewhere, under an id.
struct Persistent {
  Ref id = 0;
};

using Value = std::variant<None, bool, std::int64_t, LargeInteger, double, Text, Bytes, List, Tuple,
                           Set, Dict, Global, Object, Persistent>;

struct Pickle {
  std::deque<Value> values;
  Ref root = 0;
  std::size_t size = 0;  // bytes from its first to its STOP

  /// nullptr if the value is of another kind.
  template <typename Kind>
  const Kind* get(Ref ref) const {
    return std::get_if<Kind>(&values[ref]);
  }
};

/// More values than this are refused: about 400 MB of memory.
inline constexpr std::size_t kMaxValues = std::size_t{1} << 22;

/// Parses the pickle at the start of `bytes`, which may go on after it. Throws UserError, which
/// begins with `what` and a colon, if there is no pickle, or if it is damaged, of another protocol
/// or too large.
Pickle parse(std::span<const std::byte> bytes, const std::string& what);

/// "collections.OrderedDict".
std::string name_of(const Global& global);

}  // namespace decent::pickle
