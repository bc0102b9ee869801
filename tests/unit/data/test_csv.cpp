// Tables of separated text: samples in closed form.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "../support/gzip_bytes.h"
#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"
#include "decent/data/csv/csv_source.h"
#include "decent/data/formats.h"

namespace decent::csv {
namespace {

using ::testing::ElementsAre;
using testing::gzip_bytes;
using ::testing::HasSubstr;
using testing::refusal;
using testing::TemporaryFolder;

using Texts = std::vector<std::string>;

TextFiles files(const Texts& contents, const char* name = "t.csv") {
  TextFiles all;
  for (const std::string& content : contents)
    all.push_back(std::make_shared<const TextFile>(content, name));
  return all;
}

std::unique_ptr<Source> open(const std::string& content, const CsvOptions& options = {}) {
  return open_csv(files({content}), {}, options);
}

template <class T>
std::vector<T> all_of(const Source& source, const char* name) {
  const std::size_t field = source.field_index(name).value();
  std::vector<std::int64_t> indices(static_cast<std::size_t>(source.size()));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<T> values(indices.size() * source.fields()[field].sample_bytes() / sizeof(T));
  source.read(field, indices, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

std::vector<float> x_of(const Source& source) { return all_of<float>(source, "x"); }
std::vector<float> y_of(const Source& source) { return all_of<float>(source, "y"); }
std::vector<std::int64_t> classes_of(const Source& source) {
  return all_of<std::int64_t>(source, "y");
}

TEST(Csv, TakesTheLastColumnAsTheTarget) {
  const auto source = open("a,b,y\n1,2.5,3\n-4,.5,6e2\n");
  ASSERT_EQ(source->fields().size(), 2U);
  EXPECT_EQ(source->fields()[0].shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(source->fields()[1].shape, std::vector<std::int64_t>{1});
  EXPECT_EQ(source->fields()[1].dtype, DType::float32);
  EXPECT_EQ(source->size(), 2);
  EXPECT_THAT(x_of(*source), ElementsAre(1, 2.5, -4, 0.5));
  EXPECT_THAT(y_of(*source), ElementsAre(3, 600));
  EXPECT_TRUE(source->classes().empty());
}

TEST(Csv, KnowsAHeaderByItsWords) {
  EXPECT_EQ(open("1,2\n3,4\n")->size(), 2);
  EXPECT_EQ(open("1,2\n3,4\n", {.header = "true"})->size(), 1);
  EXPECT_EQ(open("a,b\n3,4\n")->size(), 1);
  EXPECT_EQ(open("a,2\n3,4\n", {.header = "true"})->size(), 1);
  EXPECT_THAT(refusal([] { open("a,2\n3,4\n"); }),
              HasSubstr("t.csv:1: column 0: expected a number, got 'a'"));
}

TEST(Csv, ReadsWhatOtherProgramsWrite) {
  const std::vector<float> x = {1, 2, 4, 5};
  const Texts same = {
      "1,2,3\n4,5,6\n",
      "1,2,3\r\n4,5,6\r\n",
      "1,2,3\n4,5,6",
      "1,2,3\r\n4,5,6\r",
      "\xEF\xBB\xBF"
      "1,2,3\n4,5,6\n",
      "\n1,2,3\n\n\r\n4,5,6\n\n",
      "\n1;2;3\n4;5;6\n",
      "a,b,y\r1,2,3\r4,5,6\r",
      "1,2,3\r4,5,6",
      "sep=;\r\n1;2;3\r\n4;5;6\r\n",
      "sep=;\na,1;b;y\n1;2;3\n4;5;6\n",
      "\"sep=\t\"\n1\t2\t3\n4\t5\t6\n",
      "\xEF\xBB\xBFsep=|\n\n1|2|3\n4|5|6",
      "1;2;3\n4;5;6\n",
      "1\t2\t3\n4\t5\t6\n",
      "1|2|3\n4|5|6\n",
      "\"1\",\"2\",\"3\"\n\"4\",5,\"6\"\n",
      " 1 ,+2,\t3\n4.0,5.,6e0\n",
      "\"a\"\"b\",\"c,\n\",y\n1,2,3\n4,5,6\n",
  };
  for (const std::string& content : same) {
    const auto source = open(content);
    EXPECT_EQ(x_of(*source), x) << content;
    EXPECT_THAT(y_of(*source), ElementsAre(3, 6)) << content;
  }
}

TEST(Csv, ReadsDecimalCommas) {
  const CsvOptions commas{.decimal = ","};
  for (const char* content :
       {"a;y\n1,5;-2,25\n+3;4,5e1\n", "1,5;-2,25\n3;45\n", "1,5\t-2,25\n3\t45\n",
        "\"1,5\",\"-2,25\"\n3,\"45,0\"\n", "a,y\n\"1,5\",\"-2,25\"\n3,45\n"}) {
    const auto source = open(content, commas);
    EXPECT_THAT(x_of(*source), ElementsAre(1.5, 3)) << content;
    EXPECT_THAT(y_of(*source), ElementsAre(-2.25, 45)) << content;
  }
  const auto filled = open("1,5;0\n;0\n", {.missing = "0.5", .decimal = ","});
  EXPECT_THAT(x_of(*filled), ElementsAre(1.5, 0.5));
  EXPECT_THAT(refusal([] { open("1,5;1,5\n2;2,5\n", {.y_type = "class"}); }),
              HasSubstr("say `decimal"));
}

TEST(Csv, PassesOverComments) {
  const CsvOptions hash{.comment = "#"};
  for (const char* content :
       {"# a; title; with; many\na,b,y\n1,2,3\n# 7,8,9\n4,5,6\n#", "#\n1,2,3\r\n#\r\n4,5,6\r\n",
        "sep=,\n#x\n1,2,3\n4,5,6\n", "#1|2\n1;2;3\n#\n4;5;6\n"}) {
    const auto source = open(content, hash);
    EXPECT_THAT(x_of(*source), ElementsAre(1, 2, 4, 5)) << content;
    EXPECT_THAT(y_of(*source), ElementsAre(3, 6)) << content;
  }
  const auto inside =
      open("w,y\n\"#1\n# no comment\",3\na#b,6\n", {.one_hot = {"w"}, .comment = "#"});
  EXPECT_EQ(inside->size(), 2);
}

TEST(Csv, RoundsToTheNearestFloat) {
  const auto source = open(
      "0.1,16777217,1e-60,1e-45,0\n3.4028235e38,-0,100000000000000000000,"
      "0.30000001192092896,0\n");
  EXPECT_THAT(x_of(*source),
              ElementsAre(0.1F, 16777216.0F, 0.0F, 1e-45F, 3.4028235e38F, 0.0F, 1e20F, 0.3F));
}

TEST(Csv, TakesTheColumnsThatAreNamed) {
  const std::string content = "id,p0,p1,q,y\n7,1,2,3,4\n8,5,6,7,8\n";
  EXPECT_THAT(x_of(*open(content, {.x = Texts{"q", "p*"}})), ElementsAre(3, 1, 2, 7, 5, 6));
  EXPECT_THAT(x_of(*open(content, {.drop = {"id"}})), ElementsAre(1, 2, 3, 5, 6, 7));
  EXPECT_THAT(x_of(*open(content, {.x = Texts{"1", "-2"}})), ElementsAre(1, 3, 5, 7));
  const auto two = open(content, {.x = Texts{"q"}, .y = Texts{"p1", "y"}});
  EXPECT_EQ(two->fields()[1].shape, std::vector<std::int64_t>{2});
  EXPECT_THAT(y_of(*two), ElementsAre(2, 4, 6, 8));
  const auto same = open(content, {.x = Texts{"p0", "p1"}, .y = Texts{"p0", "p1"}});
  EXPECT_EQ(x_of(*same), y_of(*same));
  const auto none = open(content, {.y = Texts{"none"}});
  EXPECT_EQ(none->fields().size(), 1U);
  EXPECT_THAT(x_of(*none), ElementsAre(7, 1, 2, 3, 4, 8, 5, 6, 7, 8));
}

// The index that pandas writes is no input.
TEST(Csv, LeavesOutColumnsWithoutAName) {
  EXPECT_THAT(x_of(*open(",a,y\n0,5,1\n1,6,2\n")), ElementsAre(5, 6));
  EXPECT_THAT(x_of(*open(",a,y\n0,5,1\n1,6,2\n", {.x = Texts{"0", "a"}})), ElementsAre(0, 5, 1, 6));
}

TEST(Csv, NumbersTheClassesInTheOrderOfTheirBytes) {
  const auto source = open("x,y\n1,cat\n2,Dog\n3,cat\n4,\"a \"\"b\"\", c\"\n5, ant \n");
  EXPECT_THAT(source->classes(), ElementsAre("Dog", "a \"b\", c", "ant", "cat"));
  EXPECT_EQ(source->fields()[1].dtype, DType::int64);
  EXPECT_TRUE(source->fields()[1].shape.empty());
  EXPECT_THAT(classes_of(*source), ElementsAre(3, 0, 3, 1, 2));
}

TEST(Csv, TakesIntegersAsClassesWhereAsked) {
  EXPECT_EQ(open("1,7\n")->fields()[1].dtype, DType::float32);
  const auto source = open("1,7\n2,-100\n", {.y_type = "class"});
  EXPECT_THAT(classes_of(*source), ElementsAre(7, -100));
  EXPECT_TRUE(source->classes().empty());
  const auto mixed = open("1,10\n2,b\n3,9\n", {.y_type = "class"});
  EXPECT_THAT(mixed->classes(), ElementsAre("10", "9", "b"));
  EXPECT_THAT(classes_of(*mixed), ElementsAre(0, 2, 1));
}

TEST(Csv, MakesColumnsOfWordsOneHot) {
  const auto source = open("a,w,b,y\n1,red,2,0\n3,blue,4,0\n5,red,6,0\n", {.one_hot = {"w"}});
  EXPECT_EQ(source->fields()[0].shape, std::vector<std::int64_t>{4});
  EXPECT_THAT(x_of(*source), ElementsAre(1, 0, 1, 2, 3, 1, 0, 4, 5, 0, 1, 6));
}

TEST(Csv, FillsWhatIsMissingAsSaid) {
  const std::string content = "a,w,y\n1,u,0\n,v,0\nNaN,,0\n5,u,0\n";
  EXPECT_THAT(x_of(*open(content, {.one_hot = {"w"}, .missing = "-1"})),
              ElementsAre(1, 1, 0, -1, 0, 1, -1, 0, 0, 5, 1, 0));
  EXPECT_THAT(x_of(*open(content, {.one_hot = {"w"}, .missing = "mean"})),
              ElementsAre(1, 1, 0, 3, 0, 1, 3, 0, 0, 5, 1, 0));
  for (const char* missing :
       {"", " ", "NA", "n/a", "-inf", "Infinity", "null", "None", "?", "-nan"}) {
    EXPECT_THAT(x_of(*open(std::string("1,0\n") + missing + ",0\n", {.missing = "2"})),
                ElementsAre(1, 2))
        << missing;
  }
}

TEST(Csv, TakesClassesCategoriesAndMeansFromTheReference) {
  const CsvOptions options{.one_hot = {"w"}, .missing = "mean"};
  const TextFiles train = files({"a,w,y\n2,u,no\n4,v,yes\n"}, "train.csv");
  const auto source = open_csv(files({"a,w,y\n,v,yes\n8,v,yes\n"}), train, options);
  EXPECT_THAT(source->classes(), ElementsAre("no", "yes"));
  EXPECT_THAT(classes_of(*source), ElementsAre(1, 1));
  EXPECT_THAT(x_of(*source), ElementsAre(3, 0, 1, 8, 0, 1));
  const auto told = [&](const char* content) {
    return refusal([&] { open_csv(files({content}), train, options); });
  };
  EXPECT_EQ(told("a,w,y\n1,u,yes\n1,u,nay\n"),
            "t.csv:3: column 'y': expected one of the classes of 'train.csv', 'no', 'yes', got "
            "'nay'");
  EXPECT_EQ(told("a,w,y\n1,uu,yes\n"),
            "t.csv:2: column 'w': expected one of the categories of 'train.csv', 'u', 'v', got "
            "'uu'; did you mean 'u'?");
  EXPECT_THAT(told("b,w,y\n1,u,yes\n"),
              HasSubstr("'t.csv' has no column 'a', which 'train.csv' has"));
}

TEST(Csv, ReadsSeveralFilesAsOne) {
  const auto source = open_csv(files({"a,y\n1,u\n2,w\n", "a,y\n3,v\n"}), {}, {});
  EXPECT_THAT(x_of(*source), ElementsAre(1, 2, 3));
  EXPECT_THAT(classes_of(*source), ElementsAre(0, 2, 1));
  EXPECT_THAT(source->classes(), ElementsAre("u", "v", "w"));
  EXPECT_THAT(refusal([] {
                open_csv(files({"a,y\n1,2\n", "b,y\n1,2\n"}), {}, {});
              }),
              HasSubstr("expected column 'a', -> column 'y'; got column 'b', -> column 'y'"));
}

// x and y of a row say which it is; some rows have several lines.
std::string numbered_rows(std::int64_t rows, bool quotes) {
  std::string content = "text,x,y\n";
  for (std::int64_t i = 0; i < rows; ++i) {
    content += i % 7 != 0 ? "plain" : quotes ? "\"a,\n\"\"b\"\"\"" : "a\"_\"b";
    content += "," + std::to_string(i) + "," + std::to_string(2 * i) + "\n";
  }
  return content;
}

void read_both(const Source& source, std::span<const std::int64_t> order, std::span<float> x,
               std::span<float> y) {
  source.read_fields(
      order, std::array{std::as_writable_bytes(x).data(), std::as_writable_bytes(y).data()});
}

// Over many places that are remembered.
TEST(Csv, ReadsAnyRowsInAnyOrder) {
  constexpr std::int64_t kRows = 3000;
  for (const bool quotes : {true, false}) {
    const TemporaryFolder folder;
    write_file(folder / "t.csv", numbered_rows(kRows, quotes));
    const auto source =
        open_csv({std::make_shared<const TextFile>(folder / "t.csv")}, {}, {.x = Texts{"x"}});
    ASSERT_EQ(source->size(), kRows);
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < kRows; ++i) order.push_back(i * 1237 % kRows);
    for (std::int64_t i = 0; i < 50; ++i) order.push_back(i + 1000);
    std::vector<float> x(order.size());
    std::vector<float> y(order.size());
    source->read(0, order, reinterpret_cast<std::byte*>(x.data()));
    source->read(1, order, reinterpret_cast<std::byte*>(y.data()));
    for (std::size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(x[i], static_cast<float>(order[i]));
      ASSERT_EQ(y[i], static_cast<float>(2 * order[i]));
    }
    const std::vector<float> wanted_x = std::exchange(x, std::vector<float>(order.size()));
    const std::vector<float> wanted_y = std::exchange(y, std::vector<float>(order.size()));
    read_both(*source, order, x, y);
    EXPECT_EQ(x, wanted_x);
    EXPECT_EQ(y, wanted_y);
  }
}

// A column may be an input and the target.
TEST(Csv, ReadsSharedColumnsOfBothFields) {
  const auto source = open("a,b\n1,2\n3,4\n", {.x = Texts{"a", "b"}, .y = Texts{"b"}});
  std::vector<float> x(4);
  std::vector<float> y(2);
  read_both(*source, std::vector<std::int64_t>{1, 0}, x, y);
  EXPECT_THAT(x, ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(y, ElementsAre(4, 2));
}

TEST(Csv, NoticesAFileThatIsCutWhileItIsInUse) {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 5000; ++i) content += "1,2\n";
  write_file(folder / "t.csv", content);
  const auto source = open_csv({std::make_shared<const TextFile>(folder / "t.csv")}, {}, {});
  std::filesystem::resize_file(folder / "t.csv", 100);
  float x = 0;
  const std::int64_t last = 4999;
  EXPECT_THAT(refusal([&] {
                source->read(0, {&last, 1}, reinterpret_cast<std::byte*>(&x));
              }),
              HasSubstr("truncated while it was in use"));
}

TEST(Csv, ReadsCompressedFiles) {
  const TemporaryFolder folder;
  const std::string content = "a,y\n1,2\n3,4\n";
  write_file(folder / "t.csv.gz", gzip_bytes(content.substr(0, 6)) + gzip_bytes(content.substr(6)));
  const auto source = data_format("csv").open(
      with_defaults(data_format("csv").keys, {{"path", Paths{folder / "t.csv.gz"}}}));
  EXPECT_THAT(x_of(*source), ElementsAre(1, 3));
  EXPECT_THAT(y_of(*source), ElementsAre(2, 4));
}

TEST(Csv, RefusesCompressedFilesThatAreNot) {
  const TemporaryFolder folder;
  const auto told = [&](const std::string& bytes) {
    write_file(folder / "t.gz", bytes);
    return refusal([&] { TextFile(folder / "t.gz"); });
  };
  const std::string whole = gzip_bytes("a,y\n1,2\n");
  EXPECT_THAT(told(whole.substr(0, whole.size() - 5)),
              HasSubstr("t.gz': damaged: its compressed data is cut short at byte "));
  std::string damaged = whole;
  damaged[12] = static_cast<char>(damaged[12] ^ 0x55);
  EXPECT_THAT(told(damaged), HasSubstr("damaged: its compressed data is broken at byte "));
  // 64 MiB of zeros in 64 KiB.
  EXPECT_THAT(told(gzip_bytes(std::string(std::size_t{1} << 26, '0'))),
              HasSubstr("inflates to more than 300 times its size"));
}

// ---- columns that are fields of their own
// --------------------------------------------------------

const char* const kWeighted = "a,w,b,y\n1,0.5,2,3\n4,0,5,6\n";

TEST(CsvFields, AreNeitherInputNorTarget) {
  const auto source = open(kWeighted, {.fields = {"w"}});
  ASSERT_EQ(source->fields().size(), 3U);
  EXPECT_EQ(source->fields()[2].name, "w");
  EXPECT_EQ(source->fields()[2].shape, std::vector<std::int64_t>{});
  EXPECT_THAT(x_of(*source), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(y_of(*source), ElementsAre(3, 6));
  EXPECT_THAT(all_of<float>(*source, "w"), ElementsAre(0.5, 0));
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("; fields are column 'w'; ")));
}

TEST(CsvFields, AreReadTogetherWithTheOthers) {
  const auto source =
      open("w,y,a,v\n1,2,3,4\n5,6,7,8\n9,10,11,12\n", {.y = Texts{"y"}, .fields = {"v", "w"}});
  std::vector<HostArray> sample(4);
  const std::vector<std::size_t> all = {0, 1, 2, 3};
  for (std::size_t row = 0; row < 3; ++row) {
    source->read_one(all, static_cast<std::int64_t>(row), sample);
    std::vector<float> values;
    for (HostArray& field : sample) values.push_back(field.as<float>()[0]);
    const auto first = static_cast<float>(4 * row);
    EXPECT_THAT(values, ElementsAre(first + 3, first + 2, first + 4, first + 1));
  }
}

TEST(CsvFields, NeedNoTarget) {
  const auto source = open("a,w\n1,2\n3,4\n", {.y = Texts{"none"}, .fields = {"w"}});
  EXPECT_THAT(x_of(*source), ElementsAre(1, 3));
  EXPECT_THAT(all_of<float>(*source, "w"), ElementsAre(2, 4));
}

TEST(CsvFields, AreCalledByTheirNumbersWithoutAHeader) {
  const auto source = open("1,2,3\n4,5,6\n", {.fields = {"-2"}});
  EXPECT_THAT(all_of<float>(*source, "1"), ElementsAre(2, 5));
}

// Evaluation needs no weights; training data that is read again does.
TEST(CsvFields, AreFoundInDataThatIsReadAsAnotherWas) {
  const CsvOptions trained{.fields = {"w"}};
  const KnownTable known = learn_table(files({kWeighted}), trained);
  const auto other = open_csv_as(files({"y,b,a\n1,2,3\n"}), {}, {}, known, {}, true);
  EXPECT_EQ(other->fields().size(), 2U);
  EXPECT_THAT(x_of(*other), ElementsAre(3, 2));
  const auto again = open_csv_as(files({kWeighted}), {}, trained, known, {}, true);
  EXPECT_THAT(x_of(*again), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(all_of<float>(*again, "w"), ElementsAre(0.5, 0));
}

TEST(CsvFields, AreNumbersOfColumnsThatNothingElseUses) {
  EXPECT_THAT(refusal([] { open("a,w,y\n1,heavy,3\n", {.fields = {"w"}}); }),
              HasSubstr("t.csv:2: column 'w': expected a number, got 'heavy'"));
  EXPECT_THAT(refusal([] { open("a,w,y\n1,,3\n", {.fields = {"w"}}); }),
              HasSubstr("t.csv:2: column 'w': expected a number, got ''"));
  EXPECT_THAT(
      refusal([] { open("a,y,w\n1,2,3\n", {.fields = {"w"}}); }),
      HasSubstr("fields names column 'w', which is part of y; expected a column of its own"));
  EXPECT_THAT(refusal([] { open("a,w,y\n1,2,3\n", {.x = Texts{"w"}, .fields = {"w"}}); }),
              HasSubstr("fields names column 'w', which is part of x"));
  EXPECT_THAT(refusal([] { open("x,a,b\n1,2,3\n", {.fields = {"x"}}); }),
              HasSubstr("fields names column 'x', but x and y are the input and the target"));
  EXPECT_THAT(refusal([] { open("a,w,y\n1,2,3\n", {.fields = {"v"}}); }),
              HasSubstr("fields names a column 'v', which it does not have"));
}

}  // namespace
}  // namespace decent::csv
