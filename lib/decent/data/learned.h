#pragma once
// What a run learned from its training data: data.json. Files come from users, so every field is
// distrusted. No torch.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"

namespace decent {

struct LearnedData {
  std::string format = {};  // of data.train; empty if unknown, as for runs without data.json
  Options keys = {};        // of data.train, without places (OptionKey::is_place)
  Options learned = {};     // Source::learned
  std::vector<NamedValues> transforms = {};  // data.transforms, with numbers in place of `auto`
  std::optional<std::vector<NamedValues>> eval_transforms = {};  // data.eval_transforms, likewise
  std::vector<std::string> classes = {};  // their names; empty if the data numbers them
  bool normalizes = false;  // the model file that carries this text does `normalize` by itself
  std::string where = {};   // the source of this, for messages; not part of the file

  bool is_whole() const { return !format.empty(); }
};

/// The text of data.json, in which names are written by written_names.
std::string print_learned(const LearnedData& data);
/// The same; empty if `data` is not whole.
std::string print_if_whole(const LearnedData& data);

/// Throws UserError naming `file` for a text that print_learned did not write.
LearnedData parse_learned(std::string_view text, const std::string& file);

/// The names as they are written to a file, in which all text is UTF-8. In names that are not
/// UTF-8, every byte beyond ASCII is written like "\xe4", so that different names stay different.
std::vector<std::string> written_names(const std::vector<std::string>& names);

/// The number of the class that `label` names. Compares the names, without the blanks around the
/// label, or the values if both are whole numbers. Nothing if no class has that name.
std::optional<std::int64_t> class_of(std::string_view label,
                                     const std::vector<std::string>& classes);

/// The text without the spaces and tabs around it.
std::string_view trimmed(std::string_view text);

/// The value of a label that is a whole number.
std::optional<std::int64_t> number_in_label(std::string_view label);

/// Sorts names of classes: by their values if all are whole numbers and `bytewise` is false, else
/// by their bytes. Throws UserError naming both if two are the same number (07 and 7).
void sort_classes(std::vector<std::string>& classes, bool bytewise);

/// The line that says that classes are in the order of their values; nothing if that is also the
/// order of their bytes.
std::optional<std::string> note_on_order(const std::vector<std::string>& classes);

/// Whether a label stands for a missing value rather than for a class: empty, NA, N/A, NaN, null,
/// None (any case) or ?.
bool is_missing_label(std::string_view label);

}  // namespace decent
