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

// Six bits say what is asked for.
std::unique_ptr<decent::Source> open(unsigned choice, const decent::csv::TextFiles& files) {
  if ((choice & 1) != 0) {
    decent::PairsOptions options;
    options.source_length = options.target_length = 16;
    options.tokens = static_cast<decent::TokenKind>(choice / 2 % 3);
    options.cut = (choice & 8) != 0;
    options.pad_in_batch = (choice & 16) != 0;
    return open_pairs(files, {}, options);
  }
  decent::csv::CsvOptions options;
  if ((choice & 2) != 0) options.missing = "mean";
  if ((choice & 4) != 0) options.y_type = "class";
  if ((choice & 8) != 0) options.one_hot = {"0", "w*"};
  if ((choice & 16) != 0) options.decimal = ",";
  if ((choice & 32) != 0) options.comment = "#";
  return open_csv(files, {}, options);
}

// As far as extents are known.
void read_together(const decent::Source& source, const std::vector<std::int64_t>& rows) {
  std::vector<std::vector<std::byte>> batch;
  std::vector<std::byte*> outs;
  for (const decent::Field& field : source.fields()) {
    batch.emplace_back(field.fixed() ? rows.size() * field.sample_bytes() : 0);
    outs.push_back(field.fixed() ? batch.back().data() : nullptr);
  }
  source.read_fields(rows, outs);
}

// Few rows, as each may have thousands of one-hot elements; the last one first, so that each is
// looked for.
void read_some(const decent::Source& source) {
  constexpr std::int64_t kMaxRows = 64;
  const std::int64_t count = std::min(source.size(), kMaxRows);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.rbegin(), rows.rend(), source.size() - count);
  std::vector<std::size_t> fields(source.fields().size());
  std::iota(fields.begin(), fields.end(), std::size_t{0});
  try {
    read_together(source, rows);
    std::vector<decent::HostArray> sample(fields.size());
    for (const std::int64_t row : rows) source.read_one(fields, row, sample);
  } catch (const decent::UserError&) {
    std::abort();
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
