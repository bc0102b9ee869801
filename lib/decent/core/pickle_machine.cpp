#include "decent/core/pickle_machine.h"

namespace decent::pickle {

void Machine::fail(const std::string& reason) const {
  throw UserError(what_ + ": damaged: its pickle " + reason);
}

Pickle Machine::finish() {
  pickle_.root = pop();
  pickle_.size = reader_.position();
  return std::move(pickle_);
}

// ---- the stack ----

void Machine::check_count() const {
  if (pickle_.values.size() < kMaxValues) return;
  throw UserError(what_ + ": its pickle has more than " + std::to_string(kMaxValues) +
                  " values.\nFrom Python, save the weights alone: torch.save(model.state_dict(), "
                  "\"weights.pt\")");
}

void Machine::push(Ref ref) {
  if (stack_.size() == kMaxValues) fail("stacks up too many values");
  stack_.push_back(ref);
}

void Machine::mark() {
  if (marks_.size() == kMaxValues) fail("stacks up too many marks");
  marks_.push_back(stack_.size());
}

Ref Machine::top() const {
  if (stack_.size() <= bottom()) fail("takes a value that is not there");
  return stack_.back();
}

Ref Machine::pop() {
  const Ref ref = top();
  stack_.pop_back();
  return ref;
}

Items Machine::pop_many(std::size_t count) {
  if (stack_.size() - bottom() < count) fail("takes values that are not there");
  Items items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return items;
}

Items Machine::pop_to_mark() {
  if (marks_.empty()) fail("goes back to a mark that is not there");
  Items items = pop_many(stack_.size() - marks_.back());
  marks_.pop_back();
  return items;
}

// ---- the memo ----

void Machine::remember(std::uint32_t number) {
  if (memo_.size() == kMaxValues) fail("remembers too many values");
  memo_.insert_or_assign(number, top());
}

void Machine::recall(std::uint32_t number) {
  const auto found = memo_.find(number);
  if (found == memo_.end()) fail("recalls a value that it did not remember");
  push(found->second);
}

// ---- values ----

void Machine::make_integer(std::string_view bytes) {
  if (bytes.size() > sizeof(std::int64_t)) return make(LargeInteger{bytes});
  const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  make(static_cast<std::int64_t>(value));
}

void Machine::make_dict() {
  const Items keys_and_values = pop_to_mark();
  make(Dict{});
  add_entries(keys_and_values);
}

void Machine::append_one() {
  const Ref item = pop();
  add_items({item});
}

void Machine::append_many() {
  const Items items = pop_to_mark();
  add_items(items);
}

void Machine::add_items(const Items& items) {
  Value& container = at(top());
  Items* to = nullptr;
  if (auto* list = std::get_if<List>(&container)) to = &list->items;
  if (auto* set = std::get_if<Set>(&container)) to = &set->items;
  if (auto* object = std::get_if<Object>(&container)) to = &object->items;
  if (to == nullptr) fail("appends to what is no list");
  to->insert(to->end(), items.begin(), items.end());
}

void Machine::add_entries(const Items& keys_and_values) {
  Value& container = at(top());
  Entries* to = nullptr;
  if (auto* dict = std::get_if<Dict>(&container)) to = &dict->entries;
  if (auto* object = std::get_if<Object>(&container)) to = &object->entries;
  if (to == nullptr) fail("sets entries of what is no dictionary");
  if (keys_and_values.size() % 2 != 0) fail("has a key without a value");
  for (std::size_t i = 0; i < keys_and_values.size(); i += 2) {
    to->emplace_back(keys_and_values[i], keys_and_values[i + 1]);
  }
}

// ---- names and calls ----

void Machine::global() {
  const std::string_view module = reader_.line();
  make(Global{module, reader_.line()});
}

void Machine::stack_global() {
  const Items names = pop_many(2);
  const Text* module = pickle_.get<Text>(names[0]);
  const Text* name = pickle_.get<Text>(names[1]);
  if (module == nullptr || name == nullptr) fail("names a global by what is no text");
  make(Global{module->text, name->text});
}

void Machine::extension(std::uint64_t code_bytes) {
  make(Global{"extension registry", reader_.text(code_bytes)});
}

void Machine::call(Ref callee, Ref arguments) {
  make(Object{.callee = callee, .arguments = arguments, .items = {}, .entries = {}, .state = {}});
}

void Machine::call_with_tuple() {
  const Items parts = pop_many(2);
  call(parts[0], parts[1]);
}

void Machine::call_with_names() {
  const Items parts = pop_many(3);  // the last: arguments by name
  call(parts[0], parts[1]);
}

void Machine::call_with_stack() {
  Items arguments = pop_to_mark();
  if (arguments.empty()) fail("makes an object of no class");
  const Ref callee = arguments.front();
  arguments.erase(arguments.begin());
  make(Tuple{std::move(arguments)});
  call(callee, pop());
}

void Machine::call_named() {
  global();
  const Ref callee = pop();
  make(Tuple{pop_to_mark()});
  call(callee, pop());
}

void Machine::build() {
  const Ref state = pop();
  auto* object = std::get_if<Object>(&at(top()));
  if (object == nullptr) fail("gives a state to what is no object");
  object->state = state;
}

}  // namespace decent::pickle
