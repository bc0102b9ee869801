#include "decent/core/pickle.h"

#include <array>
#include <bit>
#include <cstdint>

#include "decent/core/error.h"
#include "decent/core/pickle_machine.h"

namespace decent::pickle {
namespace {

constexpr std::uint8_t kProto = 0x80;
constexpr std::uint8_t kStop = '.';
constexpr int kNewestProtocol = 5;

template <typename Number>
std::int64_t integer(Machine& m) {
  return m.reader().number<Number>();
}

template <typename Size>
std::string_view text(Machine& m) {
  return m.reader().text(m.reader().number<Size>());
}

// Big-endian, unlike all other numbers.
double real(Machine& m) {
  return std::bit_cast<double>(__builtin_bswap64(m.reader().number<std::uint64_t>()));
}

struct Instruction {
  std::uint8_t code;
  void (*run)(Machine& m);
};

// In the order of Python's Lib/pickle.py, which has their names. Instructions of protocols 0 and 1
// that protocol 2 replaced are left out, and so are those for buffers outside of the pickle.
constexpr Instruction kInstructions[] = {
    {'(', [](Machine& m) { m.mark(); }},
    {'0', [](Machine& m) { m.pop(); }},
    {'1', [](Machine& m) { m.pop_to_mark(); }},
    {'2', [](Machine& m) { m.push(m.top()); }},
    {'G', [](Machine& m) { m.make(real(m)); }},
    {'J', [](Machine& m) { m.make(integer<std::int32_t>(m)); }},
    {'K', [](Machine& m) { m.make(integer<std::uint8_t>(m)); }},
    {'M', [](Machine& m) { m.make(integer<std::uint16_t>(m)); }},
    {'N', [](Machine& m) { m.make(None{}); }},
    {'Q', [](Machine& m) { m.make(Persistent{m.pop()}); }},
    {'R', [](Machine& m) { m.call_with_tuple(); }},
    {'T', [](Machine& m) { m.make(Text{text<std::uint32_t>(m)}); }},
    {'U', [](Machine& m) { m.make(Text{text<std::uint8_t>(m)}); }},
    {'X', [](Machine& m) { m.make(Text{text<std::uint32_t>(m)}); }},
    {'a', [](Machine& m) { m.append_one(); }},
    {'b', [](Machine& m) { m.build(); }},
    {'c', [](Machine& m) { m.global(); }},
    {'d', [](Machine& m) { m.make_dict(); }},
    {'}', [](Machine& m) { m.make(Dict{}); }},
    {'e', [](Machine& m) { m.append_many(); }},
    {'h', [](Machine& m) { m.recall(m.reader().number<std::uint8_t>()); }},
    {'i', [](Machine& m) { m.call_named(); }},
    {'j', [](Machine& m) { m.recall(m.reader().number<std::uint32_t>()); }},
    {'l', [](Machine& m) { m.make(List{m.pop_to_mark()}); }},
    {']', [](Machine& m) { m.make(List{}); }},
    {'o', [](Machine& m) { m.call_with_stack(); }},
    {'q', [](Machine& m) { m.remember(m.reader().number<std::uint8_t>()); }},
    {'r', [](Machine& m) { m.remember(m.reader().number<std::uint32_t>()); }},
    {'s', [](Machine& m) { m.set_one(); }},
    {'t', [](Machine& m) { m.make(Tuple{m.pop_to_mark()}); }},
    {')', [](Machine& m) { m.make(Tuple{}); }},
    {'u', [](Machine& m) { m.set_many(); }},
    // Protocol 2.
    {0x81, [](Machine& m) { m.call_with_tuple(); }},
    {0x82, [](Machine& m) { m.extension(1); }},
    {0x83, [](Machine& m) { m.extension(2); }},
    {0x84, [](Machine& m) { m.extension(4); }},
    {0x85, [](Machine& m) { m.make(Tuple{m.pop_many(1)}); }},
    {0x86, [](Machine& m) { m.make(Tuple{m.pop_many(2)}); }},
    {0x87, [](Machine& m) { m.make(Tuple{m.pop_many(3)}); }},
    {0x88, [](Machine& m) { m.make(true); }},
    {0x89, [](Machine& m) { m.make(false); }},
    {0x8a, [](Machine& m) { m.make_integer(text<std::uint8_t>(m)); }},
    {0x8b, [](Machine& m) { m.make_integer(text<std::uint32_t>(m)); }},
    // Protocol 3.
    {'B', [](Machine& m) { m.make(Bytes{text<std::uint32_t>(m)}); }},
    {'C', [](Machine& m) { m.make(Bytes{text<std::uint8_t>(m)}); }},
    // Protocol 4.
    {0x8c, [](Machine& m) { m.make(Text{text<std::uint8_t>(m)}); }},
    {0x8d, [](Machine& m) { m.make(Text{text<std::uint64_t>(m)}); }},
    {0x8e, [](Machine& m) { m.make(Bytes{text<std::uint64_t>(m)}); }},
    {0x8f, [](Machine& m) { m.make(Set{}); }},
    {0x90, [](Machine& m) { m.append_many(); }},
    {0x91, [](Machine& m) { m.make(Set{m.pop_to_mark()}); }},
    {0x92, [](Machine& m) { m.call_with_names(); }},
    {0x93, [](Machine& m) { m.stack_global(); }},
    {0x94, [](Machine& m) { m.remember_next(); }},
    {0x95, [](Machine& m) { m.reader().number<std::uint64_t>(); }},  // how much to read at once
    // Protocol 5.
    {0x96, [](Machine& m) { m.make(Bytes{text<std::uint64_t>(m)}); }},
};

constexpr auto kByCode = [] {
  std::array<void (*)(Machine&), 256> table{};
  for (const Instruction& instruction : kInstructions) table[instruction.code] = instruction.run;
  return table;
}();

void check_protocol(ByteReader& reader, const std::string& what) {
  if (reader.number<std::uint8_t>() != kProto) {
    throw UserError(what + ": not a pickle of protocol 2 or later, as torch.save writes it");
  }
  const int protocol = reader.number<std::uint8_t>();
  if (protocol > kNewestProtocol) {
    throw UserError(what + ": a pickle of protocol " + std::to_string(protocol) +
                    "; protocols 2 to 5 can be read: torch.save(.., pickle_protocol=2)");
  }
}

}  // namespace

Pickle parse(std::span<const std::byte> bytes, const std::string& what) {
  Machine machine(bytes, what);
  check_protocol(machine.reader(), what);
  while (true) {
    const auto code = machine.reader().number<std::uint8_t>();
    if (code == kStop) return machine.finish();
    const auto run = kByCode[code];
    if (run == nullptr) {
      machine.fail("has an instruction (" + std::to_string(code) +
                   ") that torch.save does not write");
    }
    run(machine);
  }
}

std::string name_of(const Global& global) {
  return std::string(global.module) + "." + std::string(global.name);
}

}  // namespace decent::pickle
