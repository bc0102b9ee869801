// What parse_manifest makes of texts that it did not print.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "decent/checkpoint/checksum.h"
#include "decent/checkpoint/manifest.h"
#include "decent/core/error.h"
#include "manifests.h"

namespace decent {
namespace {

using ::testing::AllOf;
using testing::example;
using ::testing::HasSubstr;
using ::testing::Not;

// Why the text is damaged; empty where it is not. Every reason names the file.
std::string damage_of(std::string_view text) {
  constexpr std::string_view kBegin = "'runs/a/manifest.json' is damaged: ";
  try {
    parse_manifest(text, "runs/a/manifest.json");
  } catch (const CheckpointDamaged& error) {
    const std::string_view message = error.what();
    EXPECT_TRUE(message.starts_with(kBegin)) << message;
    EXPECT_EQ(message.find('\n'), std::string_view::npos) << message;
    return std::string(message.substr(kBegin.size()));
  }
  return "";
}

std::string body_of(const std::string& text) { return text.substr(text.find('\n') + 1); }

// With the right checksum.
std::string sealed(const std::string& body) {
  return "{\"checksum\": \"" + checksum_of(body) + "\",\n" + body;
}

// The example with `old`, which stands in it once, replaced.
std::string edited(const std::string& old, const std::string& by) {
  std::string body = body_of(print_manifest(example()));
  const std::size_t place = body.find(old);
  EXPECT_NE(place, std::string::npos) << old;
  EXPECT_EQ(body.find(old, place + 1), std::string::npos) << old;
  body.replace(place, old.size(), by);
  return sealed(body);
}

TEST(DamagedManifest, IsFoundWhereverItIsCut) {
  const std::string text = print_manifest(example());
  ASSERT_EQ(damage_of(text), "");
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(damage_of(std::string_view(text).substr(0, size)), "") << size;
  }
}

TEST(DamagedManifest, IsFoundWhicheverBitFlips) {
  const std::string text = print_manifest(example());
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(damage_of(flipped), "") << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST(DamagedManifest, IsOneWhosePendingEvaluationIsNoTruthValue) {
  EXPECT_THAT(damage_of(edited("\"epoch\": 2", "\"epoch\": 2, \"evaluation_pending\": 1")),
              HasSubstr("evaluation_pending is neither true nor false"));
}

TEST(DamagedManifest, IsOneThatNamesAnotherFileOfData) {
  EXPECT_THAT(damage_of(edited("\"epoch\": 2",
                               "\"epoch\": 2, \"data\": {\"name\": \"../data.json\", "
                               "\"bytes\": 1, \"xxh3_128\": \"0\"}")),
              HasSubstr("data is not data.json"));
}

TEST(DamagedManifest, IsOneWithMoreBehind) {
  const std::string text = print_manifest(example());
  for (std::string_view more : {"\n", " ", "{}", "x"}) {
    EXPECT_NE(damage_of(text + std::string(more)), "") << more;
  }
  EXPECT_NE(damage_of(text + text), "");
  EXPECT_NE(damage_of(text + std::string(1, '\0')), "");
}

TEST(DamagedManifest, TellsWhatIsWrongWithTheChecksum) {
  const std::string text = print_manifest(example());
  EXPECT_EQ(damage_of(""), "it does not begin with a checksum");
  EXPECT_EQ(damage_of(text.substr(1)), "it does not begin with a checksum");
  EXPECT_EQ(damage_of(body_of(text)), "it does not begin with a checksum");
  std::string other = text;
  other[text.find("digits")] = 'D';
  EXPECT_EQ(damage_of(other), "its checksum does not fit");
}

TEST(DamagedManifest, MayHaveARightChecksum) {
  for (const char* body : {"", "}", "]", "nonsense", "\"step\": 1", "\"step\": 1} {}", "\xff",
                           "\"step\": 1e999}", "\"step\": }", "{}", "null}"}) {
    EXPECT_NE(damage_of(sealed(body)), "") << body;
  }
  EXPECT_NE(damage_of(sealed(std::string(1, '\0'))), "");
}

// A reader that calls itself for each level would run out of stack.
TEST(DamagedManifest, MayBeDeep) {
  std::string lists, objects;
  for (int i = 0; i < 300'000; ++i) {
    lists += '[';
    objects += "{\"a\":";
  }
  EXPECT_NE(damage_of(sealed("\"format\": " + lists)), "");
  EXPECT_NE(damage_of(sealed("\"format\": " + objects)), "");
  const std::string closed = lists + std::string(lists.size(), ']');
  EXPECT_EQ(damage_of(sealed("\"format\": " + closed + "}")), "format is not a text");
}

TEST(DamagedManifest, LacksAField) {
  for (const char* field : {"format", "version", "program", "step", "epoch", "consumed",
                            "epochs_done", "world_size", "metrics", "recipe", "facts", "files"}) {
    const std::string text = edited(" \"" + std::string(field) + "\":", " \"other\":");
    EXPECT_EQ(damage_of(text), std::string(field) + " is missing");
  }
}

struct Edit {
  const char* old;
  const char* by;
  const char* damage;
};

void PrintTo(const Edit& edit, std::ostream* stream) { *stream << edit.by; }

class WrongField : public ::testing::TestWithParam<Edit> {};

TEST_P(WrongField, IsDamage) {
  const Edit& edit = GetParam();
  EXPECT_EQ(damage_of(edited(edit.old, edit.by)), edit.damage);
}

INSTANTIATE_TEST_SUITE_P(
    Counts, WrongField,
    ::testing::Values(
        Edit{"\"step\": 500", "\"step\": \"500\"", "step is not a count"},
        Edit{"\"step\": 500", "\"step\": 500.0", "step is not a count"},
        Edit{"\"step\": 500", "\"step\": 5e2", "step is not a count"},
        Edit{"\"step\": 500", "\"step\": -1", "step is not a count"},
        Edit{"\"step\": 500", "\"step\": true", "step is not a count"},
        Edit{"\"step\": 500", "\"step\": null", "step is not a count"},
        Edit{"\"step\": 500", "\"step\": [500]", "step is not a count"},
        Edit{"\"step\": 500", "\"step\": 9223372036854775808", "step is not a count"},
        Edit{"\"step\": 500", "\"step\": 18446744073709551616", "step is not a count"},
        Edit{"\"epoch\": 2", "\"epoch\": -9223372036854775808", "epoch is not a count"},
        Edit{"\"consumed\": 1024", "\"consumed\": {}", "consumed is not a count"},
        Edit{"\"version\": 1", "\"version\": \"1\"", "version is not a count"},
        Edit{"\"bytes\": 214856", "\"bytes\": -1", "bytes is not a count"},
        Edit{"\"bytes\": 214856", "\"bytes\": 18446744073709551615", "bytes is not a count"},
        Edit{"\"world_size\": 2", "\"world_size\": 0", "world_size is not a count"},
        Edit{"\"epochs_done\": 2.7102272727272725", "\"epochs_done\": \"2\"",
             "epochs_done is not a number"},
        Edit{"\"epochs_done\": 2.7102272727272725", "\"epochs_done\": null",
             "epochs_done is not a number"}));

INSTANTIATE_TEST_SUITE_P(
    Texts, WrongField,
    ::testing::Values(Edit{"\"decent-train checkpoint\"", "\"another\"",
                           "it is not a checkpoint of decent-train"},
                      Edit{"\"decent-train checkpoint\"", "1", "format is not a text"},
                      Edit{"\"0.1.0 (build 0123456789ab)\"", "null", "program is not a text"},
                      Edit{"\"name: digits\\nseed: 0\\n\"", "[]", "recipe is not a text"},
                      Edit{"\"seed\": \"0\"", "\"seed\": 0", "facts holds more than texts"},
                      Edit{"\"xxh3_128\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", "\"xxh3_128\": 7",
                           "xxh3_128 is not a text"}));

constexpr const char* kOrder = "files are not those of the ranks in their order";
constexpr const char* kCount = "files does not have one file for each of world_size workers";

INSTANTIATE_TEST_SUITE_P(
    Structure, WrongField,
    ::testing::Values(
        Edit{"\"metrics\": {", "\"metrics\": 1, \"others\": {", "metrics is not an object"},
        Edit{"\"accuracy\": 0.96875", "\"accuracy\": \"high\"", "metrics holds more than numbers"},
        Edit{"\"facts\": {", "\"facts\": [], \"others\": {", "facts is not an object"},
        Edit{"\"files\": [", "\"files\": {}, \"others\": [", "files is not a list"},
        Edit{"\"files\": [", "\"files\": [1, ", "an object was expected"},
        Edit{"\"files\": [", "\"files\": [], \"others\": [", kCount},
        Edit{"\"world_size\": 2", "\"world_size\": 3", kCount},
        Edit{"\"world_size\": 2", "\"world_size\": 9223372036854775807", kCount},
        Edit{"rank-0000", "rank-0001\", \"other\": \"", kOrder},
        Edit{"rank-0000.safetensors", "../rank-0000.safetensors", kOrder},
        Edit{"rank-0000.safetensors", "/etc/passwd", kOrder},
        Edit{"rank-0001.safetensors", "rank-1.safetensors", kOrder},
        Edit{"\"name\": \"rank-0001.safetensors\",", "", "name is missing"}));

// Of the fourth of four files.
TEST(DamagedManifest, IsOneWhereWhatIsSharedIsNotInTheFileThatItNames) {
  const auto damage = [](const std::string& by) {
    std::string body = body_of(print_manifest(testing::example_alike()));
    const std::size_t last = body.rfind("\"shared_in\": 2");
    return damage_of(sealed(body.replace(last, std::string("\"shared_in\": 2").size(), by)));
  };
  constexpr const char* kNoHolder = "shared_in names a file that does not hold what is shared";
  EXPECT_EQ(damage("\"shared_in\": 2"), "");
  EXPECT_EQ(damage("\"shared_in\": 0"), "");
  EXPECT_EQ(damage("\"shared_in\": 1"), kNoHolder);
  EXPECT_EQ(damage("\"shared_in\": 4"), kNoHolder);
  EXPECT_EQ(damage("\"shared_in\": 9223372036854775807"), kNoHolder);
  EXPECT_EQ(damage("\"shared_in\": -1"), "shared_in is not a count");
  EXPECT_EQ(damage("\"other\": 2"), "shared_in is missing");
}

TEST(DamagedManifest, IsOneThatDoesNotSayWhoWasLostAndWhen) {
  const auto damage = [](const std::string& old, const std::string& by) {
    std::string body = body_of(print_manifest(testing::example_of_survivors()));
    const std::size_t place = body.find(old);
    EXPECT_NE(place, std::string::npos) << old;
    return damage_of(sealed(body.replace(place, old.size(), by)));
  };
  const std::string lost = "\"lost\": [\n  1\n ]";
  const std::string lost_at = "\"lost_at\": 1767323045.25";
  EXPECT_EQ(damage(lost, lost), "");
  EXPECT_EQ(damage(lost, "\"other\": []"), "lost is missing");
  EXPECT_EQ(damage(lost, "\"lost\": 1"), "lost is not a list");
  EXPECT_EQ(damage(lost, "\"lost\": [\"1\"]"), "lost holds more than ranks");
  EXPECT_EQ(damage(lost, "\"lost\": [0]"), kOrder);
  EXPECT_EQ(damage(lost_at, "\"lost_at\": \"then\""), "lost_at is not a number");
  EXPECT_EQ(damage(lost_at, "\"lost_at\": null"), "lost_at is not a number");
}

TEST(Manifest, OfALaterVersionIsNotDamaged) {
  for (const char* version : {"4", "9223372036854775807"}) {
    try {
      // What such a version needs is anybody's guess.
      parse_manifest(sealed("\"format\": \"decent-train checkpoint\", \"version\": " +
                            std::string(version) + "}"),
                     "runs/a/manifest.json");
      ADD_FAILURE() << "nothing was thrown";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("'runs/a/manifest.json'"), HasSubstr(version),
                                      HasSubstr("this program reads versions 1 to 3"),
                                      Not(HasSubstr("damaged"))));
    }
  }
}

TEST(Manifest, MayHoldFieldsThatNobodyKnows) {
  EXPECT_EQ(parse_manifest(edited("\"step\"", "\"new\": [{}], \"step\""), "x"), example());
}

}  // namespace
}  // namespace decent
