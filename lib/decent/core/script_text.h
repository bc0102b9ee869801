#pragma once
// Writes literals for TorchScript's source, and turns names of other formats, which may hold any
// characters, into names that it accepts.

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

/// A node has no translation into TorchScript; what() says why, without naming the node.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Gives every name an identifier of its own, spelled like the name as far as possible.
class Identifiers {
 public:
  /// "/layer1/conv/Conv_output_0" becomes "layer1_conv_Conv_output_0"; a number follows if that is
  /// taken, an underscore if it is a word of the language.
  std::string make(std::string_view name);

 private:
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, int, std::less<>> next_;  // by base name: the next number that may be free
};

/// The name of a parameter or buffer in the module. Dots stay, as steps of the hierarchy;
/// characters that names cannot have become "_".
std::string module_path(std::string_view name);

/// The same, but keeps every character that getattr in TorchScript can take: printable ASCII except
/// quotes and backslashes.
std::string printable_path(std::string_view name);

/// How TorchScript reads an attribute of the module: "self.layer1.conv.weight",
/// "getattr(self.layers, \"0\").weight".
std::string attribute_expression(std::string_view path);

/// A TorchScript literal: "0.5", "float(\"inf\")", "1e-05"; reads back to the same double.
std::string literal(double value);

/// A TorchScript string literal, quotes included.
std::string string_literal(std::string_view text);

/// "[x, y]"; an empty list states its type: "annotate(List[Tensor], [])".
std::string list_text(const std::vector<std::string>& elements, std::string_view element_type);

}  // namespace decent
