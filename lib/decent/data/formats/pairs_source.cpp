#include "decent/data/formats/pairs_source.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/csv/layout.h"
#include "decent/data/csv/numbers.h"
#include "decent/data/csv/row_index.h"
#include "decent/data/shards.h"

namespace decent {
namespace {

using csv::CellReader;
using csv::Layout;
using csv::RowIndex;

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

// The columns of the two texts of a pair; the target may be absent.
struct PairLayout {
  Layout layout;
  std::size_t source = 0;
  std::size_t target = 0;
};

// Between tabs, quotes are part of the text, as usual in such files.
PairLayout layout_of(const csv::TextFile& file, const PairsOptions& options) {
  csv::CellFormat format = csv::cell_format(file, {.separator = options.separator});
  format.quoting = format.separator != '\t';
  const auto column = [&](const std::string& key, const std::string& name) {
    return options.header && !name.empty() ? name : key;
  };
  const std::string target_column = column(options.target, options.target_name);
  csv::CsvOptions columns;
  columns.x = {column(options.source, options.source_name)};
  columns.y = {target_column};
  columns.header = options.header ? "true" : "false";
  if (!options.needs_target && !csv::has_column(file, format, columns, target_column))
    columns.y = {"none"};
  Layout layout = csv::read_layout(file, format, columns);
  const std::size_t source = layout.x.front();
  const std::size_t target = layout.y.empty() ? kNowhere : layout.y.front();
  return {.layout = std::move(layout), .source = source, .target = target};
}

RowIndex rows_of(const std::shared_ptr<const csv::TextFile>& file, const PairLayout& layout) {
  return {file, layout.layout.format, layout.layout.begin, layout.layout.line};
}

// Calls act(column, text) for the two texts of the row and for columns that are fields. False if
// the row has not as many cells as the first.
template <class Act>
bool for_used(CellReader& row, const PairLayout& layout, const Act& act) {
  for (std::size_t i = 0; i < layout.layout.columns; ++i) {
    if (!row.more()) return false;
    const csv::Cell cell = row.take();
    if (i == layout.source || i == layout.target || layout.layout.roles[i].field >= 0)
      act(i, cell.text);
  }
  return !row.more();
}

[[noreturn]] void fail_ragged(CellReader& row, const Layout& layout) {
  row.finish_row();
  row.fail("expected " + counted(static_cast<std::int64_t>(layout.columns), "cell") +
           ", as in line " + std::to_string(layout.first_line) + ", got " +
           std::to_string(row.columns()) + " with the separator " +
           csv::separator_text(layout.format.separator));
}

std::vector<std::string> words_of(const csv::TextFiles& files, const PairsOptions& options) {
  WordCounts counts;
  for (const auto& file : files) {
    const PairLayout layout = layout_of(*file, options);
    rows_of(file, layout).scan([&](CellReader& row) {
      const auto add = [&](std::size_t column, std::string_view text) {
        if (!is_utf8(text)) row.fail_encoding(layout.layout.column(column), text);
        counts.add(text);
      };
      if (!for_used(row, layout, add)) fail_ragged(row, layout.layout);
    });
  }
  if (!options.vocabulary_size) return counts.words(std::nullopt);
  const std::int64_t most = *options.vocabulary_size - options.special.largest() - 1;
  if (most < 1) {
    throw UserError("vocabulary_size: expected more than the " +
                    std::to_string(options.special.largest() + 1) +
                    " numbers up to the largest special token, got " +
                    std::to_string(*options.vocabulary_size));
  }
  return counts.words(static_cast<std::size_t>(most));
}

std::vector<Field> fields_of(const PairsOptions& options) {
  const bool any = options.pad_in_batch;
  const std::vector<std::int64_t> source = {any ? kAnyExtent : options.source_length};
  const std::vector<std::int64_t> target = {any ? kAnyExtent : options.target_length};
  const std::int64_t pad = options.special.pad;
  return {{"x", DType::int64, source, pad},
          {"x_mask", DType::boolean, source, 0},
          {"y_in", DType::int64, target, pad},
          {"y", DType::int64, target, options.ignore_index},
          {"y_mask", DType::boolean, target, 0}};
}

class PairsSource final : public SourceOfRows {
 public:
  PairsSource(const std::shared_ptr<const csv::TextFile>& file, const PairsOptions& options,
              std::shared_ptr<const Tokenizer> tokenizer)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        layout_(layout_of(*file, options)),
        rows_(rows_of(file, layout_)),
        source_{layout_.source, static_cast<std::size_t>(options.source_length)},
        // Leaves room for the token at the end.
        target_{layout_.target, static_cast<std::size_t>(options.target_length - 1)},
        fields_(fields_of(options)) {
    if (layout_.target == kNowhere) fields_.resize(kYIn);
    first_own_ = fields_.size();
    add_fields(*file);
    rows_.scan([&](CellReader& row) { check(row); });
    if (rows_.size() == 0) throw UserError("'" + file->name() + "': it has no rows of data");
  }

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return rows_.size(); }
  std::vector<std::string> classes() const override { return tokenizer_->names(); }
  std::int64_t length_of(std::int64_t index) const override {
    return options_.pad_in_batch ? lengths_[static_cast<std::size_t>(index)] : 0;
  }
  Options learned() const override {
    const auto name_of = [&](std::size_t column) {
      const std::vector<std::string>& names = layout_.layout.names;
      return column < names.size() ? names[column] : std::string();
    };
    return {{"source", name_of(layout_.source)},
            {"target", name_of(layout_.target)},
            {"words", tokenizer_->words()}};
  }

  void read_fields(std::span<const std::int64_t> indices,
                   std::span<std::byte* const> outs) const override {
    std::vector<std::byte*> at(outs.begin(), outs.end());
    Pair pair;
    rows_.read(indices, [&](CellReader& row) {
      read_pair(row, pair);
      for (std::size_t field = 0; field < at.size(); ++field) {
        if (at[field] == nullptr) continue;
        const std::vector<std::int64_t>& shape = fields_[field].shape;
        write(field, pair, shape.empty() ? 1 : shape[0], at[field]);
        at[field] += fields_[field].sample_bytes();
      }
    });
  }

  void read_one(std::span<const std::size_t> fields, std::int64_t index,
                std::span<HostArray> sample) const override {
    if (!options_.pad_in_batch) return Source::read_one(fields, index, sample);
    thread_local Pair pair;
    rows_.read({&index, 1}, [&](CellReader& row) {
      read_pair(row, pair);
      for (const std::size_t field : fields) {
        const std::size_t length = elements_of(field, pair);
        HostArray& out = sample[field];
        out.dtype = fields_[field].dtype;
        out.shape.clear();
        if (field < first_own_) out.shape.push_back(static_cast<std::int64_t>(length));
        out.bytes.resize(length * size_of(out.dtype));
        write(field, pair, static_cast<std::int64_t>(length), out.bytes.data());
      }
    });
  }

 private:
  enum : std::size_t { kX, kXMask, kYIn, kY, kYMask };

  // The column of one of the two texts, and how many tokens it may have.
  struct Side {
    std::size_t column = 0;
    std::size_t most = 0;
  };

  struct Pair {
    std::vector<std::int64_t> source;
    std::vector<std::int64_t> target;  // without begin and end
    std::vector<float> own;            // of columns that are fields
  };

  void add_fields(const csv::TextFile& file) {
    csv::add_fields(file, options_.fields, layout_.layout);
    for (const std::string& name : layout_.layout.field_names()) {
      if (field_index(name)) {
        throw UserError("'" + file.name() + "': fields names column " + in_quotes(name) +
                        ", but pairs have a field of this name");
      }
      fields_.push_back({name, DType::float32, {}});
    }
  }

  // Checks a row, and notes its length.
  void check(CellReader& row) {
    std::vector<std::int64_t> tokens;
    std::size_t longest = 0;
    const bool whole = for_used(row, layout_, [&](std::size_t column, std::string_view text) {
      if (layout_.layout.roles[column].field >= 0) number_in(row, column, text);
      for (const Side* side : {&source_, &target_}) {
        if (side->column != column) continue;
        if (options_.tokens == TokenKind::words && !is_utf8(text))
          row.fail_encoding(layout_.layout.column(column), text);
        tokens_in(row, *side, text, tokens);
        check_length(row, *side, tokens.size());
        longest = std::max(longest, tokens.size() + (side == &target_ ? 1 : 0));
      }
    });
    if (!whole) fail_ragged(row, layout_.layout);
    if (options_.pad_in_batch) lengths_.push_back(static_cast<std::int32_t>(longest));
  }

  void check_length(const CellReader& row, const Side& side, std::size_t tokens) const {
    if (tokens > 0 && tokens <= side.most) return;
    row.fail(layout_.layout.column(side.column) +
             (tokens == 0
                  ? ": expected a text, it is empty"
                  : ": expected at most " + counted(static_cast<std::int64_t>(side.most), "token") +
                        ", got " + std::to_string(tokens) + "; `too_long: cut` cuts texts"));
  }

  void tokens_in(const CellReader& row, const Side& side, std::string_view text,
                 std::vector<std::int64_t>& tokens) const {
    try {
      tokenizer_->read(text, tokens);
    } catch (const UserError& error) {
      row.fail(layout_.layout.column(side.column) + ": " + error.what());
    }
    if (options_.cut) tokens.resize(std::min(tokens.size(), side.most));
  }

  float number_in(const CellReader& row, std::size_t column, std::string_view text) const {
    try {
      return csv::needed_number(text);
    } catch (const UserError& error) {
      row.fail(layout_.layout.column(column) + ": " + error.what());
    }
  }

  // The file was checked when it was opened, so anything that is wrong now has changed since.
  void read_pair(CellReader& row, Pair& pair) const {
    pair.source.clear();
    pair.target.clear();
    pair.own.resize(layout_.layout.fields.size());
    for_used(row, layout_, [&](std::size_t column, std::string_view text) {
      const int field = layout_.layout.roles[column].field;
      if (field >= 0) pair.own[static_cast<std::size_t>(field)] = number_in(row, column, text);
      if (column == source_.column) tokens_in(row, source_, text, pair.source);
      if (column == target_.column) tokens_in(row, target_, text, pair.target);
    });
    for (const auto& [tokens, side] : {std::pair(&pair.source, &source_), {&pair.target, &target_}})
      if (side->column != kNowhere && (tokens->empty() || tokens->size() > side->most))
        RowIndex::throw_changed(row);
  }

  // Without padding.
  std::size_t elements_of(std::size_t field, const Pair& pair) const {
    if (field >= first_own_) return 1;
    return field <= kXMask ? pair.source.size() : pair.target.size() + 1;
  }

  // Writes `extent` elements of a field: its tokens, then its padding.
  void write(std::size_t field, const Pair& pair, std::int64_t extent, std::byte* out) const {
    if (field >= first_own_) {
      std::memcpy(out, &pair.own[field - first_own_], sizeof(float));
      return;
    }
    const std::vector<std::int64_t>& tokens = field <= kXMask ? pair.source : pair.target;
    const auto elements = static_cast<std::size_t>(extent);
    const std::size_t used = elements_of(field, pair);
    if (field == kXMask || field == kYMask) {
      std::memset(out, 1, used);
      std::memset(out + used, 0, elements - used);
      return;
    }
    const SpecialTokens& special = tokenizer_->special();
    if (field == kYIn) out = put(out, special.begin);
    out =
        std::copy_n(std::as_bytes(std::span(tokens)).data(), tokens.size() * sizeof tokens[0], out);
    if (field == kY) out = put(out, special.end);
    for (std::size_t i = used; i < elements; ++i) out = put(out, *fields_[field].padding);
  }

  static std::byte* put(std::byte* out, std::int64_t token) {
    std::memcpy(out, &token, sizeof token);
    return out + sizeof token;
  }

  PairsOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  PairLayout layout_;
  RowIndex rows_;
  Side source_;
  Side target_;
  std::vector<Field> fields_;
  std::vector<std::int32_t> lengths_;  // of the rows, if pad_in_batch; see length_of
  std::size_t first_own_ = 0;          // the number of the first field that is a column
};

}  // namespace

std::unique_ptr<Source> open_pairs(const csv::TextFiles& files, const csv::TextFiles& reference,
                                   const PairsOptions& options) {
  if (files.empty()) throw UserError("path: expected at least one file");
  std::vector<std::string> words;
  if (options.tokens == TokenKind::words) {
    words = options.vocabulary ? *options.vocabulary
                               : words_of(reference.empty() ? files : reference, options);
    if (options.vocabulary && !reference.empty() && words_of(reference, options) != words) {
      throw UserError("reference: the words of '" + reference.front()->name() +
                      "' are not those that the run has learned; leave reference out");
    }
  }
  const auto tokenizer =
      std::make_shared<const Tokenizer>(options.tokens, options.special, std::move(words));
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<std::string> names;
  for (const auto& file : files) {
    sources.push_back(std::make_unique<PairsSource>(file, options, tokenizer));
    names.push_back(file->name());
  }
  return concatenated(std::move(sources), std::move(names));
}

}  // namespace decent
