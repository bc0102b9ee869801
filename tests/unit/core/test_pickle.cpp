// Against what Python's pickle.dumps and pickletools.dis say of the same bytes.

#include "decent/core/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "../support/safetensors_bytes.h"
#include "decent/core/error.h"

namespace decent::pickle {
namespace {

using decent::testing::as_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;  // texts with zeros inside

std::string refusal(const std::string& bytes) {
  try {
    parse(as_bytes(bytes), "'x'");
    return "parsed";
  } catch (const UserError& error) {
    return error.what();
  }
}

template <typename Kind>
Kind root(const std::string& body) {
  static std::string kept;  // texts are views
  kept = "\x80\x02" + body + ".";
  const Pickle pickle = parse(as_bytes(kept), "'x'");
  const Kind* value = pickle.get<Kind>(pickle.root);
  if (value == nullptr) throw std::logic_error("another kind");
  return *value;
}

TEST(Pickle, Integers) {
  EXPECT_EQ(root<std::int64_t>("K\xff"), 255);
  EXPECT_EQ(root<std::int64_t>("M\xff\xff"), 65535);
  EXPECT_EQ(root<std::int64_t>("J\xfe\xff\xff\xff"), -2);
  EXPECT_EQ(root<std::int64_t>("\x8a\x00"s), 0);
  EXPECT_EQ(root<std::int64_t>("\x8a\x01\xff"), -1);
  EXPECT_EQ(root<std::int64_t>("\x8a\x02\xff\x00"s), 255);
  EXPECT_EQ(root<std::int64_t>("\x8a\x05\x00\x00\x00\x00\x80"s), -(std::int64_t{1} << 39));
  EXPECT_EQ(root<std::int64_t>("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(root<std::int64_t>("\x8b\x01\x00\x00\x00\x07"s), 7);
  EXPECT_EQ(root<LargeInteger>("\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x01"s).bytes.size(), 9u);
}

TEST(Pickle, OtherAtoms) {
  EXPECT_EQ(root<double>("G\xbf\xf8\x00\x00\x00\x00\x00\x00"s), -1.5);
  EXPECT_TRUE(root<bool>("\x88"));
  EXPECT_FALSE(root<bool>("\x89"));
  EXPECT_NO_THROW(root<None>("N"));
  EXPECT_EQ(root<Text>("X\x02\x00\x00\x00hi"s).text, "hi");
  EXPECT_EQ(root<Text>("\x8c\x02hi").text, "hi");
  EXPECT_EQ(root<Text>("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"s).text, "hi");
  EXPECT_EQ(root<Text>("U\x02hi").text, "hi");
  EXPECT_EQ(root<Bytes>("C\x02hi").bytes, "hi");
  EXPECT_EQ(root<Bytes>("\x96\x02\x00\x00\x00\x00\x00\x00\x00hi"s).bytes, "hi");
}

TEST(Pickle, ContainersKeepTheirOrder) {
  EXPECT_THAT(root<Tuple>("(NK\x01K\x02t").items, ElementsAre(0, 1, 2));
  EXPECT_THAT(root<Tuple>("NK\x01\x86").items, ElementsAre(0, 1));
  EXPECT_THAT(root<List>("](NK\x01"
                         "eK\x02"
                         "a")
                  .items,
              ElementsAre(1, 2, 3));
  EXPECT_THAT(root<Set>("\x8f(NK\x01\x90").items, ElementsAre(1, 2));
  EXPECT_THAT(root<Dict>("}(NK\x01uK\x02K\x03s").entries,
              ElementsAre(std::pair(1u, 2u), std::pair(3u, 4u)));
  EXPECT_THAT(root<Dict>("(NK\x01"
                         "d")
                  .entries,
              ElementsAre(std::pair(0u, 1u)));
}

TEST(Pickle, TheMemoGivesTheSameValueAgain) {
  EXPECT_THAT(root<Tuple>("]q\x05h\x05\x86").items, ElementsAre(0, 0));
  EXPECT_THAT(root<Tuple>("]\x94h\x00\x86"s).items, ElementsAre(0, 0));
  EXPECT_THAT(root<Tuple>("]r\x05\x00\x01\x00j\x05\x00\x01\x00\x86"s).items, ElementsAre(0, 0));
  EXPECT_THAT(root<List>("]q\x01h\x01"
                         "a")
                  .items,
              ElementsAre(0));  // a list in itself
}

// os.system("ls") by each instruction that would call it.
TEST(Pickle, CallsAreRecorded) {
  const std::string ls = "X\x02\x00\x00\x00ls"s;
  for (const std::string& body :
       {"cos\nsystem\n" + ls + "\x85R", "cos\nsystem\n" + ls + "\x85\x81",
        "cos\nsystem\n" + ls + "\x85}\x92", "(cos\nsystem\n" + ls + "o", "(" + ls + "ios\nsystem\n",
        "\x8c\x02os\x8c\x06system\x93" + ls + "\x85R"}) {
    const std::string bytes = "\x80\x04" + body + ".";
    const Pickle pickle = parse(as_bytes(bytes), "'x'");
    const Object* object = pickle.get<Object>(pickle.root);
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(name_of(*pickle.get<Global>(object->callee)), "os.system");
    const Tuple* arguments = pickle.get<Tuple>(object->arguments);
    ASSERT_NE(arguments, nullptr);
    ASSERT_EQ(arguments->items.size(), 1u);
    EXPECT_EQ(pickle.get<Text>(arguments->items[0])->text, "ls");
  }
}

TEST(Pickle, WhatHappensToAnObjectIsRecorded) {
  const Object object = root<Object>(
      "ca\nb\n)R(K\x01K\x02"
      "eK\x03K\x04s}b");
  EXPECT_EQ(object.items.size(), 2u);
  EXPECT_EQ(object.entries.size(), 1u);
  EXPECT_TRUE(object.state.has_value());
}

TEST(Pickle, ExtensionsAndPersistentIdsStayNumbers) {
  EXPECT_EQ(root<Global>("\x82\x07").module, "extension registry");
  EXPECT_EQ(root<Persistent>("K\x07Q").id, 0u);
}

TEST(Pickle, WhatFollowsIsLeftAlone) {
  EXPECT_EQ(parse(as_bytes("\x80\x02N.\x80\x02N."), "'x'").size, 4u);
}

TEST(Pickle, WhatIsNoneIsRefused) {
  EXPECT_THAT(refusal(""), HasSubstr("'x': damaged: its pickle ends too early"));
  EXPECT_THAT(refusal("(lp0\n."), HasSubstr("not a pickle of protocol 2 or later"));
  EXPECT_THAT(refusal("\x80\x06N."), HasSubstr("protocol 6"));
  EXPECT_THAT(refusal("\x80\x02S'os'\n."), HasSubstr("an instruction (83)"));
  EXPECT_THAT(refusal("\x80\x05\x97."), HasSubstr("an instruction (151)"));
  EXPECT_THAT(refusal("\x80\x02N]a."), HasSubstr("appends to what is no list"));
  EXPECT_THAT(refusal("\x80\x02NNNs."), HasSubstr("no dictionary"));
  EXPECT_THAT(refusal("\x80\x02}(Nu."), HasSubstr("a key without a value"));
  EXPECT_THAT(refusal("\x80\x02NNb."), HasSubstr("a state to what is no object"));
  EXPECT_THAT(refusal("\x80\x02NN\x93."), HasSubstr("by what is no text"));
  EXPECT_THAT(refusal("\x80\x02(o."), HasSubstr("an object of no class"));
  EXPECT_THAT(refusal("\x80\x02"
                      "cos\nsystem."),
              HasSubstr("ends too early"));
}

TEST(Pickle, EveryCutIsRefused) {
  const std::string bytes =
      "\x80\x02}(X\x01\x00\x00\x00"
      "aG\xbf\xf8\x00\x00\x00\x00\x00\x00u(ca\nb\nto."s;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(refusal(bytes.substr(0, size)), "parsed") << size;
  }
}

}  // namespace
}  // namespace decent::pickle
