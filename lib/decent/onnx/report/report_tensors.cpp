#include "decent/onnx/report/report_tensors.h"

#include <cctype>
#include <map>

#include "decent/core/text.h"
#include "decent/onnx/format/elements.h"

namespace decent::onnx {
namespace {

std::string rest_of_line(const ReportedTensor& reported) {
  return " " + std::string(name_of(reported.tensor->type)) + shape_text(reported.tensor->dims) +
         ": " + reported.classified->reason + reported.note;
}

// The name with a star for every number.
std::string glob_of(const std::string& name) {
  std::string glob;
  for (const char c : name) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit) glob += c;
    if (is_digit && (glob.empty() || glob.back() != '*')) glob += '*';
  }
  return glob;
}

/// Tensors that share a line.
struct Group {
  std::string glob;
  const ReportedTensor* first = nullptr;
  std::size_t count = 0;
};

}  // namespace

std::string tensor_line(const ReportedTensor& reported) {
  const std::string& name = reported.classified->name;
  const std::string& in_file = reported.tensor->name;
  return "  " + name + (in_file == name ? "" : " ('" + in_file + "' in the file)") +
         rest_of_line(reported);
}

std::vector<std::string> grouped_lines(const std::vector<ReportedTensor>& tensors) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> places;  // in `groups`, by the text of the line
  for (const ReportedTensor& each : tensors) {
    const std::string glob = glob_of(each.classified->name);
    const auto [place, is_new] = places.try_emplace(glob + rest_of_line(each), groups.size());
    if (is_new) groups.push_back({glob, &each, 0});
    ++groups[place->second].count;
  }
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    lines.push_back(group.count == 1 ? tensor_line(*group.first)
                                     : "  " + std::to_string(group.count) + " x " + group.glob +
                                           rest_of_line(*group.first));
  }
  return lines;
}

}  // namespace decent::onnx
