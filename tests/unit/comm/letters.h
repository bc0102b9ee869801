#pragma once
// Messages of text between workers that share memory.

#include <cstring>
#include <string>
#include <vector>

#include "decent/comm/shared_memory/mail.h"

namespace decent::testing {

constexpr MessageTag kTag{.group = 7, .number = 1};

inline std::string text_of(const Letter& letter) {
  return {reinterpret_cast<const char*>(letter.data()), static_cast<std::size_t>(letter.bytes())};
}

/// The block that it is sent from is given back at once.
inline void send_text(Mail& mail, const std::vector<std::size_t>& to, const std::string& text,
                      MessageTag tag = kTag) {
  const Block block = mail.take(std::ssize(text));
  std::memcpy(block.data(), text.data(), text.size());
  mail.send(block.data(), std::ssize(text), to, tag);
}

inline std::string receive_text(Mail& mail, std::size_t from, MessageTag tag = kTag) {
  return text_of(mail.receive(from, tag));
}

}  // namespace decent::testing
