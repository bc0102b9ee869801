#pragma once
// The formats of data sources: each is a file that ends with its row (built_in.h), and a program
// may register its own.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"
#include "decent/data/source.h"

namespace decent {

/// How data is read that is evaluated or predicted, or the training data again after a resume: as
/// the training data was read.
struct Reading {
  bool needs_target = true;  // false: of data.predict
  /// The names of the training data's classes, none where it numbers them itself. nullopt: nothing
  /// is known of it.
  std::optional<std::vector<std::string>> classes = std::nullopt;
  std::string where = {};  // says so, for messages: "data.train", "'runs/x/data.json'"
  /// Of training data of this format: the values of its keys, and Source::learned. Else null.
  const Options* keys = nullptr;
  const Options* learned = nullptr;
  /// Of data.predict where nothing was learned: the keys of data.train if that is of this format,
  /// whose files may be there. Else null.
  const Options* train = nullptr;
};

/// A row of the table.
struct DataFormat {
  std::string name;             // as `format` of data.train and data.eval has it
  std::vector<OptionKey> keys;  // that it takes
  /// Throws UserError for data that cannot be read.
  std::function<std::unique_ptr<Source>(const Options& options)> open;
  /// The same as a reading says. Empty: what this format reads depends on its keys alone.
  std::function<std::unique_ptr<Source>(const Options& options, const Reading& reading)> open_as =
      {};
};

/// The key `path`: files and wildcards.
OptionKey path_key(std::string meaning);

/// Makes a format known by its name, for this process. Throws UserError for an empty name, one
/// that is taken, and a format that opens nothing. Any thread.
void register_data_format(DataFormat format);

/// The format of that name. Throws UserError for an unknown one, listing all. Any thread.
DataFormat data_format(std::string_view name);

/// All that data_format knows: those of built_in.h, then those that were registered. Any thread.
std::vector<DataFormat> data_formats();

}  // namespace decent
