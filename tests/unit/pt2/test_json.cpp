#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "../support/refusal.h"
#include "decent/pt2/json/document.h"

namespace decent::pt2 {
namespace {

using decent::testing::refusal;
using ::testing::ElementsAre;
using ::testing::StartsWith;

std::string repeated(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(Json, ValuesAreThoseOfTheText) {
  const JsonDocument document(R"({"a": [1, -2.5, "t\u00e9", true, null], "b": {}})", "'x'");
  const Json root = document.root();
  EXPECT_EQ(root.size(), 2u);
  const Json list = root.at("a");
  auto item = list.list().begin();
  EXPECT_EQ((*item).integer(), 1);
  EXPECT_EQ((*++item).real(), -2.5);
  EXPECT_EQ((*++item).text(), "t\xc3\xa9");
  EXPECT_TRUE((*++item).boolean());
  EXPECT_TRUE((*++item).is_null());
  EXPECT_EQ(++item, list.list().end());
  EXPECT_EQ(root.at("b").size(), 0u);
}

TEST(Json, KeysAreInTheOrderOfTheFile) {
  const JsonDocument document(R"({"z": 1, "a": {"q": 2}, "m": 3})", "'x'");
  std::vector<std::string> keys;
  for (const Json value : document.root().object()) keys.push_back(value.key());
  EXPECT_THAT(keys, ElementsAre("z", "a", "m"));
}

TEST(Json, TextsStandForNumbersThatJsonLacks) {
  const JsonDocument document(R"(["Infinity", "-Infinity", "NaN", 3])", "'x'");
  auto item = document.root().list().begin();
  EXPECT_EQ((*item).real(), INFINITY);
  EXPECT_EQ((*++item).real(), -INFINITY);
  EXPECT_TRUE(std::isnan((*++item).real()));
  EXPECT_EQ((*++item).real(), 3.0);
}

TEST(Json, NullIsAsIfItWereNotThere) {
  const JsonDocument document(R"({"a": null})", "'x'");
  EXPECT_FALSE(document.root().find("a"));
  EXPECT_EQ(refusal([&] { document.root().at("a"); }), "'x': it has no 'a'");
}

TEST(Json, ErrorsNameThePlace) {
  const JsonDocument document(R"({"a": [{}, {"b\n": [7, [], 99999999999999999999, 0.5]}]})", "'x'");
  auto item = document.root().at("a").list().begin();
  const Json list = *(*++item).object().begin();
  EXPECT_EQ(refusal([&] { list.text(); }), "'x': a[1].b? is a list, not a text");
  auto number = list.list().begin();
  EXPECT_EQ(refusal([&] { (*number).text(); }), "'x': a[1].b?[0] is 7, not a text");
  EXPECT_EQ(refusal([&] { (*++number).object(); }), "'x': a[1].b?[1] is a list, not an object");
  for (const int place : {2, 3}) {
    EXPECT_EQ(refusal([&] { (*++number).integer(); }),
              "'x': a[1].b?[" + std::to_string(place) + "] is a real number, not an integer");
  }
}

TEST(Json, PlacesAreOfBoundedLength) {
  const std::string key = "\"" + std::string(1000, 'k') + "\": ";
  const JsonDocument document(repeated("{" + key, 100) + "7" + repeated("}", 100), "'x'");
  Json value = document.root();
  while (value.kind() == Json::Kind::object) value = value.alternative();
  const std::string message = refusal([&] { value.text(); });
  EXPECT_THAT(message, StartsWith("'x': ...kkk"));
  EXPECT_LT(message.size(), 1000u);
}

TEST(Json, AlternativesAreOne) {
  EXPECT_EQ(JsonDocument(R"({"as_int": 3})", "'x'").root().alternative().integer(), 3);
  const JsonDocument two(R"({"as_int": 3, "as_int": 4})", "'x'");
  EXPECT_EQ(refusal([&] { two.root().alternative(); }), "'x': it has 2 alternatives, not one");
}

TEST(Json, WhatIsNoJsonIsRefused) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\" 1}", "nul", "1 2", "[1e999]", "\"\xff\"", "[\"\n\"]"}) {
    EXPECT_THAT(refusal([&] { JsonDocument(text, "'x'"); }),
                StartsWith("'x': is no JSON from byte"))
        << text;
  }
}

TEST(Json, DepthIsBounded) {
  const auto nested = [](std::size_t depth) { return repeated("[", depth) + repeated("]", depth); };
  const JsonDocument deepest(nested(kMaxJsonDepth), "'x'");
  EXPECT_EQ(deepest.root().size(), 1u);
  const std::string refused = "'x': is nested deeper than 512 lists and objects";
  EXPECT_EQ(refusal([&] { JsonDocument(nested(kMaxJsonDepth + 1), "'x'"); }), refused);
  // Told before the text ends.
  EXPECT_EQ(refusal([&] { JsonDocument(repeated("{\"\":", 10'000'000), "'x'"); }), refused);
}

TEST(Json, NumberOfValuesIsBounded) {
  const auto list = [](std::size_t values) { return "[0" + repeated(",0", values - 2) + "]"; };
  const std::size_t most = 2 * kMaxValuesOfSmallJson - 2;  // of two bytes each
  EXPECT_EQ(JsonDocument(list(most), "'x'").root().size(), most - 1);
  EXPECT_THAT(refusal([&] { JsonDocument(list(most + 10), "'x'"); }),
              StartsWith("'x': has more than 200003 values"));
}

}  // namespace
}  // namespace decent::pt2
