// What is told of wrong tables of separated text.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "../support/refusal.h"
#include "decent/data/csv/csv_source.h"

namespace decent::csv {
namespace {

using testing::refusal;

TextFiles one_file(const std::string& content) {
  return {std::make_shared<const TextFile>(content, "t.csv")};
}

struct Wrong {
  const char* content;
  CsvOptions options;
  const char* message;
};

TEST(Csv, SaysWhereAFileIsWrong) {
  const std::vector<Wrong> cases = {
      {"", {}, "'t.csv': it has no rows"},
      {"\n\r\n", {}, "'t.csv': it has no rows"},
      {"a,y\n", {}, "'t.csv': it has no rows of data"},
      {"\xFF\xFE"
       "1",
       {},
       "'t.csv' is UTF-16; expected UTF-8 (iconv -f UTF-16 -t UTF-8)"},
      {"1,2\n3\n", {}, "t.csv:2: expected 2 cells, as in line 1, got 1 with the separator ','"},
      {"\n1,2\n\n3,4,5,6\n",
       {},
       "t.csv:4: expected 2 cells, as in line 2, got 4 with the separator ','"},
      {"1\t2\n3\n", {}, "t.csv:2: expected 2 cells, as in line 1, got 1 with the separator tab"},
      {"a,y\n1,2\n3x,4\n",
       {},
       "t.csv:3: column 'a': expected a number, got '3x' (one_hot is for columns of words, drop "
       "for "
       "those that are no inputs)"},
      {"1,2\n0x10,4\n",
       {},
       "t.csv:2: column 0: expected a number, got '0x10' (one_hot is for columns of words, drop "
       "for "
       "those that are no inputs)"},
      {"1,2\n1e39,4\n",
       {},
       "t.csv:2: column 0: expected a number that fits into float32, got '1e39'"},
      {"1,2\n,4\n",
       {},
       "t.csv:2: column 0: expected a number, got ''; `missing: mean` or a number fills such "
       "cells"},
      {"1,2\n3,\n", {}, "t.csv:2: column 1: the target is missing"},
      {"1,2\n3,nan\n", {.y_type = "number"}, "t.csv:2: column 1: expected a number, got 'nan'"},
      {"1,2.5\n3,four\n", {}, "t.csv:2: column 1: expected a number, as in other rows, got 'four'"},
      {"1,2\n3,four\n",
       {},
       "t.csv:2: column 1: expected a number, as in other rows, got 'four'; where both are "
       "classes, "
       "say y_type: class"},
      {"1,2\n3,4.5\n",
       {.y_type = "class"},
       "t.csv:2: column 1: expected a class, an integer or a word, got '4.5'; whole numbers are "
       "written without a point, in pandas by table[\"y\"].astype(int)"},
      {"1,2,3\n4,,6\n",
       {.y = Texts{"1", "2"}},
       "t.csv:2: column 1: expected a number, got ''; the target is missing"},
      {"1,2,3\n",
       {.y = Texts{"1", "2"}, .y_type = "class"},
       "y_type: a class is one column, y names 2"},
      {"1,\"2\n\n3,4\n", {}, "t.csv:1: column 1: expected a closing quote before the file ends"},
      {"1,2\n\"3\n\"x,4\n",
       {},
       "t.csv:3: column 0: expected a separator or the end of the line after a closing quote (a "
       "quote inside of quotes is written twice)"},
      {"price,size,y\n1,2,3\n",
       {.x = Texts{"prise"}},
       "'t.csv': x names a column 'prise', which it does not have; expected a number from 0 to 2 "
       "or "
       "a name of 'price', 'size', 'y'; did you mean 'price'?"},
      {"1,2,3\n",
       {.y = Texts{"3"}},
       "'t.csv': y names a column '3', which it does not have; expected a number from 0 to 2 (its "
       "first row is no header)"},
      {"a,a,y\n1,2,3\n",
       {.x = Texts{"a"}},
       "'t.csv': 2 columns are called 'a'; x may name them by their numbers, from 0"},
      {"a,b,y\n1,2,3\n", {.x = Texts{"a", "0"}}, "'t.csv': x names column 'a' twice"},
      {"a,y\n1,2\n",
       {.x = Texts{"a"}, .one_hot = {"y"}},
       "'t.csv': one_hot names column 'y', which is not among x"},
      {"5\n6\n",
       {},
       "'t.csv': no column is left for x; it has 1 column with the separator ','; where another "
       "character stands between the cells, `separator` names it"},
      {"a,w,y\n1,,3\n",
       {.one_hot = {"w"}},
       "t.csv:2: column 'w': expected a word, got ''; with `missing: 0` such cells are zeros"},
      {"a,y\n,1\n",
       {.missing = "mean"},
       "'t.csv': missing: column 'a' has no number, and so no mean"},
      {"1,2\n", {.missing = "zero"}, "missing: expected error, mean or a number, got 'zero'"},
      {"a;y\n1,5;2\n",
       {},
       "t.csv:2: column 'a': expected a number, got '1,5'; where the comma is the decimal mark, "
       "say "
       "`decimal: \",\"`"},
      {"1,5;2,5\n3,5;4,5\n",
       {},
       "t.csv:1: column 0: expected a number, got '1,5'; where the comma is the decimal mark, say "
       "`decimal: \",\"`"},
      {"a;y\n1;2,5\n3;4,5\n",
       {},
       "t.csv:2: column 'y': expected a number, got '2,5'; where the comma is the decimal mark, "
       "say "
       "`decimal: \",\"`; `y_type: class` takes it for a word"},
      {"a;y\n1.234,5;2\n",
       {.decimal = ","},
       "t.csv:2: column 'a': expected a number, got '1.234,5'; `decimal: \",\"` takes the comma "
       "alone for the decimal mark, and separators of thousands are not read: write such numbers "
       "without them"},
      {"a;y\n1.234;2\n",
       {.decimal = ","},
       "t.csv:2: column 'a': expected a number, got '1.234'; `decimal: \",\"` takes the comma "
       "alone for the decimal mark, and separators of thousands are not read: write such numbers "
       "without them"},
      {"a;y\n1,234,567.5;2\n",
       {},
       "t.csv:2: column 'a': expected a number, got '1,234,567.5'; separators of thousands are not "
       "read: write such numbers without them"},
      {"a;y\n12 345;2\n",
       {},
       "t.csv:2: column 'a': expected a number, got '12 345'; separators of thousands are not "
       "read: "
       "write such numbers without them"},
      {"id,2019,y\n1,2,3\n",
       {},
       "t.csv:1: column 0: expected a number, got 'id' (one_hot is for columns of words, drop for "
       "those that are no inputs); the first row is taken for data, as one of its cells is a "
       "number: where it has the names of the columns, say `header: true`"},
      {"2019,2020,y\n1,2,3\n4,5,6\n",
       {.y_type = "class"},
       "t.csv:1: column 2: expected a number, as in other rows, got 'y'; the first row is taken "
       "for "
       "data, as one of its cells is a number: where it has the names of the columns, say `header: "
       "true`"},
      {"# a title\n1,2,3\n",
       {},
       "'t.csv': no column is left for x; it has 1 column with the separator ','; where another "
       "character stands between the cells, `separator` names it; where a line "
       "that "
       "begins with '#' is a comment, say `comment: \"#\"`"},
      {"# by A, B\n1,2,3\n",
       {},
       "t.csv:2: expected 2 cells, as in line 1, got 3 with the separator ','; where a line that "
       "begins with '#' is a comment, say `comment: \"#\"`"},
      {"1,2\n%\n",
       {},
       "t.csv:2: column 0: expected a number, got '%' (one_hot is for columns of words, drop for "
       "those that are no inputs); where a line that "
       "begins with '%' is a comment, say `comment: \"%\"`"},
      {"1,2\n",
       {.comment = "//"},
       "comment: expected a character that neither numbers nor quotes have, as '#', got '//'"},
      {"1,2\n",
       {.comment = ","},
       "comment: ',' separates the cells of 't.csv'; expected another character"},
      {"w,y\n1,ab\n2,c\rd\n",
       {},
       "t.csv:3: column 1: a CR stands inside of a cell, while other lines end with LF; end all "
       "lines alike (tr '\\r' '\\n'), or put the cell in quotes"},
      {"a,y\n1,ok\n2,M\xFCnchen\n",
       {},
       "t.csv:3: column 'y': the text 'M?nchen' is not UTF-8 (Latin-1 or Windows-1252?); convert "
       "the file: iconv -f WINDOWS-1252 -t UTF-8"},
      {"w,y\nK\xF6ln,1\n",
       {.one_hot = {"w"}},
       "t.csv:2: column 'w': the text 'K?ln' is not UTF-8 (Latin-1 or Windows-1252?); convert the "
       "file: iconv -f WINDOWS-1252 -t UTF-8"},
      {"gr\xF6\xDF"
       "e,y\n1,2\n",
       {},
       "t.csv:1: column 0: the text 'gr??e' is not UTF-8 (Latin-1 or Windows-1252?); convert the "
       "file: iconv -f WINDOWS-1252 -t UTF-8"},
      {"a,b,y\n1,5,2,5,3\n",
       {},
       "t.csv:2: expected 3 cells, as in line 1, got 5 with the separator ','; where commas are "
       "decimal marks, too, the cells cannot be told apart: put such numbers in quotes and say "
       "`decimal: \",\"`, or separate the cells by semicolons"},
      {"1,2\n",
       {.separator = "e"},
       "separator: expected auto, tab or a character that neither numbers nor quotes have, got "
       "'e'"},
  };
  for (const Wrong& wrong : cases)
    EXPECT_EQ(refusal([&] { open_csv(one_file(wrong.content), {}, wrong.options); }),
              wrong.message);
}

}  // namespace
}  // namespace decent::csv
