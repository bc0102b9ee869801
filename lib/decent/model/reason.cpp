#include "decent/model/reason.h"

#include <c10/util/Exception.h>

#include <string_view>

namespace decent {
namespace {

// The start of what TorchScript's interpreter writes before the reason: indented lines of code.
constexpr std::string_view kTraceback = "\nTraceback of TorchScript";
constexpr std::string_view kHere = "<--- HERE";

// The line above the last mark: the statement that raised.
std::string raising_line(const std::string& text) {
  const std::size_t mark = text.rfind('\n', text.rfind(kHere));
  if (mark == std::string::npos || mark == 0) return "";
  const std::size_t begin = text.find_first_not_of(' ', text.rfind('\n', mark - 1) + 1);
  return text.substr(begin, mark - begin);
}

// Whether a line is "builtins.ValueError: why": the name of a class and a colon. Lines of code,
// which may begin at the margin too, are not like that.
bool names_exception(std::string_view line) {
  const std::size_t end =
      line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  if (end == std::string_view::npos || line.substr(end, 2) != ": ") return false;
  const char first = line[line.substr(0, end).rfind('.') + 1];  // of the name's last part
  return first >= 'A' && first <= 'Z';
}

// The line after the tracebacks, plus the statement if the exception has no text of its own.
std::string raised(const std::string& text) {
  const std::size_t here = text.rfind(kHere);
  const std::size_t traceback = text.rfind(kTraceback) + 1;
  std::size_t line = text.find('\n', here == std::string::npos ? traceback : here);
  for (; line != std::string::npos; line = text.find('\n', line + 1)) {
    std::string reason = text.substr(line + 1, text.find('\n', line + 1) - line - 1);
    if (!names_exception(reason)) continue;
    constexpr std::string_view kModule = "builtins.";
    if (reason.starts_with(kModule)) reason.erase(0, kModule.size());
    return reason.ends_with(": ") ? reason + raising_line(text) : reason;
  }
  return "";
}

}  // namespace

std::string reason_of(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = c10_error ? c10_error->what_without_backtrace() : error.what();
  text = text.substr(0, text.find("\nException raised from"));
  // The first line of such an error says what is wrong, the others how to debug PyTorch.
  if (const std::size_t cuda = text.find("CUDA error: "); cuda != std::string::npos)
    return text.substr(cuda, text.find('\n', cuda) - cuda);
  // The reason may have many lines, but the first one is enough.
  if (text.find(kTraceback) != std::string::npos) {
    if (const std::string reason = raised(text); !reason.empty()) return reason;
  }
  text.erase(0, text.find_first_not_of(" \n"));  // complaints about code begin with an empty line
  return text.substr(0, text.find('\n'));
}

}  // namespace decent
