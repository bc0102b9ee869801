// Files of token ids as a data source.

#include <string>
#include <utility>

#include "decent/core/file.h"
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

std::unique_ptr<Source> open_tokens(const std::filesystem::path& path,
                                    const TokenReading& reading) {
  auto file = std::make_shared<const MappedFile>(path);
  const TokensLayout layout =
      read_tokens_layout(file->bytes(), reading.header, reading.type, path.string());
  return make_windows_source({.file = std::move(file),
                              .begin = layout.begin,
                              .width = static_cast<std::size_t>(layout.type),
                              .count = layout.count,
                              .note = layout.doubt},
                             reading.windows, reading.vocabulary);
}

}  // namespace

DataFormat tokens_format() {
  return {.name = "tokens",
          .keys = {path_key("The file of ids, a list of files or a glob."),
                   {.name = "dtype",
                    .type = OptionType::text,
                    .meaning = "Type in which ids are stored; null: the type that llm.c's header "
                               "names, or uint16 without a header.",
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
