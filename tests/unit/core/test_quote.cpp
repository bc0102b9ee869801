#include "decent/core/text.h"

#include <gtest/gtest.h>

namespace decent {
namespace {

// Question marks in quotes. (Two of them and a quote would be a trigraph.)
std::string marks(std::size_t count) { return "'" + std::string(count, '?') + "'"; }

TEST(InQuotes, ShowsTextAsItIs) {
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("layer.0/weight"), "'layer.0/weight'");
  EXPECT_EQ(in_quotes("größe €\U0001F600"), "'größe €\U0001F600'");
}

TEST(InQuotes, ControlCharactersAndBrokenUtf8AreQuestionMarks) {
  EXPECT_EQ(in_quotes(std::string_view("a\nb\0c\x1B[\x7F", 8)), "'a?b?c?[?'");
  EXPECT_EQ(in_quotes("\x80z"), "'?z'") << "the middle of a character";
  EXPECT_EQ(in_quotes("\xE2\x82"), marks(2)) << "cut short";
  EXPECT_EQ(in_quotes("\xC0\x80"), marks(2)) << "not the shortest form";
  EXPECT_EQ(in_quotes("\xE0\x80\x80"), marks(3));
  EXPECT_EQ(in_quotes("\xED\xA0\x80"), marks(3)) << "half of a surrogate pair";
  EXPECT_EQ(in_quotes("\xF4\x90\x80\x80"), marks(4)) << "behind the last character";
  EXPECT_EQ(in_quotes("\xFF"), marks(1));
}

TEST(InQuotes, CutsWhatIsLongBetweenCharacters) {
  const std::string text(80, 'n');
  EXPECT_EQ(in_quotes(text), "'" + text + "'");
  EXPECT_EQ(in_quotes(text + "n"), "'" + text + "..'");
  EXPECT_EQ(in_quotes(text.substr(1) + "ß"), "'" + text.substr(1) + "..'");
}

}  // namespace
}  // namespace decent
