#include "decent/data/formats/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

template <class Act>
void for_each_word(std::string_view text, const Act& act) {
  constexpr std::string_view kBlank = " \t\r\n";
  for (std::size_t end = 0;;) {
    const std::size_t begin = text.find_first_not_of(kBlank, end);
    if (begin == std::string_view::npos) return;
    end = std::min(text.find_first_of(kBlank, begin), text.size());
    act(text.substr(begin, end - begin));
  }
}

std::int64_t id_in(std::string_view word) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || end != word.data() + word.size() || id < 0)
    throw UserError("expected an id, an integer >= 0, got " + in_quotes(word));
  return id;
}

}  // namespace

std::int64_t SpecialTokens::largest() const { return std::max({pad, begin, end, unknown}); }

void WordCounts::add(std::string_view text) {
  for_each_word(text, [&](std::string_view word) {
    const auto found = counts_.find(word);
    if (found != counts_.end()) {
      ++found->second;
    } else {
      counts_.emplace(word, 1);
    }
  });
}

std::vector<std::string> WordCounts::words(std::optional<std::size_t> most) const {
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [word, count] : counts_) order.emplace_back(-count, word);
  std::sort(order.begin(), order.end());
  if (most && *most < order.size()) order.resize(*most);
  std::vector<std::string> words;
  for (auto& [count, word] : order) words.push_back(std::move(word));
  return words;
}

Tokenizer::Tokenizer(TokenKind kind, SpecialTokens special, std::vector<std::string> vocabulary)
    : kind_(kind), special_(special), vocabulary_(std::move(vocabulary)) {
  for (std::size_t i = 0; i < vocabulary_.size(); ++i)
    numbers_.emplace(vocabulary_[i], special_.largest() + 1 + static_cast<std::int64_t>(i));
}

std::int64_t Tokenizer::number_of(std::string_view word) const {
  const auto found = numbers_.find(word);
  return found == numbers_.end() ? special_.unknown : found->second;
}

void Tokenizer::read(std::string_view text, std::vector<std::int64_t>& tokens) const {
  tokens.clear();
  if (kind_ == TokenKind::bytes) {
    for (const char c : text)
      tokens.push_back(special_.largest() + 1 + static_cast<unsigned char>(c));
    return;
  }
  for_each_word(text, [&](std::string_view word) {
    tokens.push_back(kind_ == TokenKind::words ? number_of(word) : id_in(word));
  });
}

std::vector<std::string> Tokenizer::names() const {
  if (kind_ != TokenKind::words) return {};
  std::vector<std::string> names(static_cast<std::size_t>(special_.largest() + 1));
  const auto set = [&](std::int64_t number, const char* name) {
    names[static_cast<std::size_t>(number)] = name;
  };
  set(special_.unknown, "<unknown>");
  set(special_.end, "<end>");
  set(special_.begin, "<begin>");
  set(special_.pad, "<pad>");
  names.insert(names.end(), vocabulary_.begin(), vocabulary_.end());
  return names;
}

}  // namespace decent
