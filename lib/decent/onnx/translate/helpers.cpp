#include "decent/onnx/translate/helpers.h"

#include <algorithm>
#include <map>

namespace decent::onnx {
namespace {

struct Helper {
  std::string_view source;         // "def _name(self, ..): .."
  std::vector<std::string> calls;  // other helpers, in the order of the source
};

using Helpers = std::map<std::string, Helper>;

// Where the line after the one at `position` begins.
std::size_t next_line(std::string_view text, std::size_t position) {
  const std::size_t end = text.find('\n', position);
  return end == std::string_view::npos ? text.size() : end + 1;
}

// The first line and the indented lines below it, up to the last of them.
std::string_view with_body(std::string_view text) {
  std::size_t end = next_line(text, 0);
  for (std::size_t line = end; line < text.size(); line = next_line(text, line)) {
    if (text[line] == ' ') end = next_line(text, line);
    if (text[line] != ' ' && text[line] != '\n') break;
  }
  return text.substr(0, end);
}

// The text before the next "(".
std::string name_at(std::string_view text) { return std::string(text.substr(0, text.find('('))); }

std::vector<std::string> methods_called(std::string_view source) {
  constexpr std::string_view kCall = "self._";
  std::vector<std::string> names;
  for (std::size_t at = source.find(kCall); at != std::string_view::npos;
       at = source.find(kCall, at + 1))
    names.push_back(name_at(source.substr(at + kCall.size() - 1)));
  return names;
}

void add_helpers(std::string_view file, Helpers& helpers) {
  constexpr std::string_view kDefinition = "\ndef ";
  for (std::size_t at = file.find(kDefinition); at != std::string_view::npos;
       at = file.find(kDefinition, at + 1)) {
    const std::string_view source = with_body(file.substr(at + 1));
    const std::string name = name_at(source.substr(kDefinition.size() - 1));
    helpers.emplace(name, Helper{source, methods_called(source)});
  }
}

const Helpers& helpers() {
  static const Helpers all = [] {
    Helpers by_name;
    for (const HelperFile& file : helper_files()) add_helpers(file.text, by_name);
    return by_name;
  }();
  return all;
}

void add_with_calls(const std::string& name, std::vector<std::string>& order) {
  if (std::find(order.begin(), order.end(), name) != order.end()) return;
  for (const std::string& callee : helpers().at(name).calls) add_with_calls(callee, order);
  order.push_back(name);
}

}  // namespace

std::string helper_methods(const std::set<std::string>& names) {
  std::vector<std::string> order;
  for (const std::string& name : names) add_with_calls(name, order);
  std::string text;
  for (const std::string& name : order) text += helpers().at(name).source;
  return text;
}

std::vector<std::string> all_helper_names() {
  std::vector<std::string> names;
  for (const auto& [name, helper] : helpers()) names.push_back(name);
  return names;
}

std::string helper_source(const std::string& name) {
  return std::string(helpers().at(name).source);
}

}  // namespace decent::onnx
