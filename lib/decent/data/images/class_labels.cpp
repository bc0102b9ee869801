#include "decent/data/images/class_labels.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>

#include "decent/core/text.h"
#include "decent/data/learned.h"

namespace decent {
namespace {

using LabelTexts = std::span<const std::string>;

bool is_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

bool is_whole(const std::string& label) { return whole_number(label).has_value(); }

[[noreturn]] void refuse_label(const WrongLabel& wrong, LabelTexts labels,
                               LabelTexts::iterator label, const std::string& problem) {
  wrong(static_cast<std::size_t>(label - labels.begin()), problem);
  throw std::logic_error("WrongLabel returned");
}

bool all_numbers(LabelTexts labels, const WrongLabel& wrong) {
  if (std::all_of(labels.begin(), labels.end(), is_whole)) return true;
  // 0.5 is not the name of a class.
  if (std::all_of(labels.begin(), labels.end(), is_number)) {
    const auto broken = std::find_if_not(labels.begin(), labels.end(), is_whole);
    refuse_label(wrong, labels, broken, "label " + *broken + ": expected a whole number or a name");
  }
  // A marker of a missing value among numbers would become a class of its own.
  const auto is_marker = [](const std::string& label) { return is_missing_label(label); };
  const bool numbers = std::all_of(labels.begin(), labels.end(), [&](const std::string& label) {
    return is_whole(label) || is_marker(label);
  });
  if (numbers) {
    const auto marker = std::find_if(labels.begin(), labels.end(), is_marker);
    refuse_label(wrong, labels, marker,
                 "label " + in_quotes(*marker) +
                     ": expected a whole number, as the other labels are; it stands for a missing "
                     "value");
  }
  return false;
}

std::optional<std::int64_t> known_number(const std::string& label,
                                         const std::vector<std::string>& classes) {
  return classes.empty() ? whole_number(label) : class_of(label, classes);
}

NumberedLabels numbered_as_known(LabelTexts labels, const ClassNumbers& numbers,
                                 const WrongLabel& wrong) {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string>& classes = *numbers.known;
  std::map<std::string, std::int64_t> found;
  NumberedLabels result{.numbers = {}, .classes = classes};
  for (auto label = labels.begin(); label != labels.end(); ++label) {
    const auto [place, is_new] = found.emplace(*label, 0);
    if (is_new) {
      const auto number = known_number(*label, classes);
      if (!number) {
        refuse_label(wrong, labels, label,
                     "label " + in_quotes(*label) + " is no class of " + numbers.where +
                         (classes.empty() ? ", whose classes are numbers without names"
                                          : ", which has " + some_of(classes, kShown)));
      }
      place->second = *number;
    }
    result.numbers.push_back(place->second);
  }
  return result;
}

NumberedLabels numbered_by_name(LabelTexts labels) {
  std::map<std::string, std::int64_t> names;
  for (const std::string& label : labels) names.emplace(label, 0);
  NumberedLabels result;
  for (auto& [name, number] : names) {
    number = std::ssize(result.classes);
    result.classes.push_back(name);
  }
  for (const std::string& label : labels) result.numbers.push_back(names.at(label));
  return result;
}

}  // namespace

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

NumberedLabels numbered_labels(LabelTexts labels, const ClassNumbers& numbers,
                               const WrongLabel& wrong) {
  if (numbers.known) return numbered_as_known(labels, numbers, wrong);
  if (!all_numbers(labels, wrong)) return numbered_by_name(labels);
  NumberedLabels result;
  for (const std::string& label : labels) result.numbers.push_back(*whole_number(label));
  return result;
}

}  // namespace decent
