// Any bytes are a valid table, or pairs, or a UserError; and what was accepted once can be read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "decent/core/error.h"
#include "decent/data/csv/csv_source.h"
#include "decent/data/formats/pairs_source.h"

namespace {

// Four bits say what is asked for.
std::unique_ptr<decent::Source> open(unsigned choice, const decent::csv::TextFiles& files) {
  if ((choice & 1) != 0) {
    decent::PairsOptions options;
    options.source_length = options.target_length = 16;
    options.tokens = static_cast<decent::TokenKind>(choice / 2 % 3);
    options.cut = (choice & 8) != 0;
    return open_pairs(files, {}, options);
  }
  decent::csv::CsvOptions options;
  if ((choice & 2) != 0) options.missing = "mean";
  if ((choice & 4) != 0) options.y_type = "class";
  if ((choice & 8) != 0) options.one_hot = {"0", "w*"};
  return open_csv(files, {}, options);
}

// Few rows, as each may have thousands of one-hot elements; the last one first, so that each is
// looked for.
void read_some(const decent::Source& source) {
  constexpr std::int64_t kMost = 64;
  const std::int64_t count = std::min(source.size(), kMost);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.rbegin(), rows.rend(), source.size() - count);
  for (std::size_t field = 0; field < source.fields().size(); ++field) {
    std::vector<std::byte> out(rows.size() * source.fields()[field].sample_bytes());
    try {
      source.read(field, rows, out.data());
    } catch (const decent::UserError&) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::unique_ptr<decent::Source> source;
  try {
    source = open(data[0], {std::make_shared<const decent::csv::TextFile>(
                               std::string(reinterpret_cast<const char*>(data) + 1, size - 1),
                               data[0] < 128 ? "t.csv" : "t.tsv")});
  } catch (const decent::UserError&) {
    return 0;
  }
  read_some(*source);
  return 0;
}
