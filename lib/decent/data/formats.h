#pragma once
// The formats of data sources: each is a file that ends with its row (built_in.h), and a program
// may register its own.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"
#include "decent/data/source.h"

namespace decent {

/// How a run reads data that it evaluates or predicts, or its training data again after a resume:
/// as it has read its training data.
struct Reading {
  bool needs_target = true;  // false: of data.predict
  /// The names of the training data's classes; empty where it numbers them itself.
  std::vector<std::string> classes = {};
  std::string where = {};  // says so, for messages: "data.train", "'runs/x/data.json'"
  /// Of training data of this format: the values of its keys, and Source::learned. Else null.
  const Options* keys = nullptr;
  const Options* learned = nullptr;
};

/// A row of the table.
struct DataFormat {
  std::string name;             // as `format` of data.train and data.eval has it
  std::vector<OptionKey> keys;  // that it takes
  /// Throws UserError for data that cannot be read.
  std::function<std::unique_ptr<Source>(const Options& options)> open;
  /// The same for data.predict, whose samples need no target: the fields of the target may be
  /// absent. `train`: the options of data.train where that is of this format, else null. Empty:
  /// `open` does it.
  std::function<std::unique_ptr<Source>(const Options& options, const Options* train)>
      open_without_target = {};
  /// The same where a run knows its training data. Empty: what this format reads depends on its
  /// keys alone.
  std::function<std::unique_ptr<Source>(const Options& options, const Reading& reading)>
      open_as_learned = {};
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
