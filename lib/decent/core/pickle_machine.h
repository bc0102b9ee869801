#pragma once
// The stack, the memo and the values of a pickle while it is read; internal to pickle.cpp. Names
// are those of Python's Lib/pickle.py if it has one.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decent/core/byte_reader.h"
#include "decent/core/error.h"
#include "decent/core/pickle.h"

namespace decent::pickle {

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& what)
      : what_(what), reader_(bytes, what + ": damaged: its pickle ends too early") {}

  /// Throws UserError.
  [[noreturn]] void fail(const std::string& reason) const;

  ByteReader& reader() { return reader_; }
  /// The result: the value on top of the stack.
  Pickle finish();

  // ---- the stack ----

  void push(Ref ref);
  template <typename Kind>
  void make(Kind value) {
    check_count();
    pickle_.values.emplace_back(std::in_place_type<Kind>, std::move(value));
    push(static_cast<Ref>(pickle_.values.size() - 1));
  }
  void mark();
  Ref top() const;
  Ref pop();
  Items pop_many(std::size_t count);
  Items pop_to_mark();

  // ---- the memo ----

  void remember(std::uint32_t number);
  void remember_next() { remember(static_cast<std::uint32_t>(memo_.size())); }
  void recall(std::uint32_t number);

  // ---- values ----

  /// Little-endian, two's complement, of any length.
  void make_integer(std::string_view bytes);
  void make_dict();
  void append_one();
  void append_many();
  void set_one() { add_entries(pop_many(2)); }
  void set_many() { add_entries(pop_to_mark()); }

  // ---- names and calls, which are only recorded ----

  void global();
  void stack_global();
  /// A number in a registry that only the program that wrote the file has.
  void extension(std::uint64_t code_bytes);
  void call_with_tuple();  // REDUCE, NEWOBJ
  void call_with_names();  // NEWOBJ_EX
  void call_with_stack();  // OBJ
  void call_named();       // INST
  void build();

 private:
  void check_count() const;
  Value& at(Ref ref) { return pickle_.values[ref]; }
  // An instruction may not reach below the last mark.
  std::size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  void add_items(const Items& items);
  void add_entries(const Items& keys_and_values);
  void call(Ref callee, Ref arguments);

  const std::string& what_;
  ByteReader reader_;
  Pickle pickle_;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint32_t, Ref> memo_;
};

}  // namespace decent::pickle
