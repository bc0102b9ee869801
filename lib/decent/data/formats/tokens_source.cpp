// Files of token ids as a data source.

#include <string>
#include <utility>

#include "decent/core/file.h"
#include "decent/core/file_kind.h"
#include "decent/data/built_in.h"
#include "decent/data/formats/tokens.h"
#include "decent/data/formats/windows.h"
#include "decent/data/shards.h"

namespace decent {
namespace {

struct TokenReading {
  TokensHeader header = TokensHeader::automatic;
  std::optional<TokenType> type;
  Windows windows;
  std::optional<std::int64_t> vocabulary;
};

TokenReading reading_of(const Options& options) {
  TokenReading reading;
  reading.windows = windows_of(options);
  reading.vocabulary = options.get_if<std::int64_t>("vocabulary");
  const auto& header = options.get<std::string>("header");
  if (header != "auto")
    reading.header = header == "none" ? TokensHeader::none : TokensHeader::llm_c;
  if (const auto type = options.get_if<std::string>("dtype"))
    reading.type = *type == "uint16" ? TokenType::uint16 : TokenType::uint32;
  return reading;
}

Sequence sequence_in(std::shared_ptr<const MappedFile> file, const TokenReading& reading) {
  const std::string name = file->path().string();
  const auto bytes = file->bytes();
  if (reading.header == TokensHeader::automatic && kind_of_file(bytes) == FileKind::tar) {
    TokenShard shard = read_token_shard(bytes, reading.type, name);
    return {.file = std::move(file), .type = shard.type, .pieces = std::move(shard.pieces)};
  }
  const TokensLayout layout = read_tokens_layout(bytes, reading.header, reading.type, name);
  return {.file = std::move(file),
          .type = layout.type == TokenType::uint16 ? IdType::uint16 : IdType::uint32,
          .pieces = {{layout.begin, layout.count}},
          .note = layout.doubt};
}

std::unique_ptr<Source> open_tokens(const std::filesystem::path& path,
                                    const TokenReading& reading) {
  return make_windows_source(sequence_in(std::make_shared<const MappedFile>(path), reading),
                             reading.windows, reading.vocabulary);
}

}  // namespace

DataFormat tokens_format() {
  return {.name = "tokens",
          .keys = {path_key("The file of ids, a list of files or a glob; a file may be a tar shard "
                            "of WebDataset with an array of ids, .npy, in each sample."),
                   {.name = "dtype",
                    .type = OptionType::text,
                    .meaning = "Type in which ids are stored; null: the type that llm.c's header "
                               "or the arrays of a shard name, or uint16 without a header.",
                    .fallback = kNull,
                    .names = {"uint16", "uint32"}},
                   length_key(),
                   stride_key(),
                   {.name = "header",
                    .type = OptionType::text,
                    .meaning = "Header in front of the ids; auto: llm.c's if the file begins with "
                               "its magic number, else none.",
                    .fallback = std::string("auto"),
                    .names = {"auto", "none", "llm.c"}},
                   {.name = "vocabulary",
                    .type = OptionType::integer,
                    .meaning = "Number of ids that the model knows; any other id is an error when "
                               "it is read. null: ids are not checked.",
                    .fallback = kNull,
                    .range = at_least(1)}},
          .open = [](const Options& options) {
            return open_shards(expand_globs(options.get<Paths>("path")),
                               [reading = reading_of(options)](const std::filesystem::path& path) {
                                 return open_tokens(path, reading);
                               });
          }};
}

}  // namespace decent
