#include "decent/model/reason.h"

#include <c10/util/Exception.h>

#include <string_view>

namespace decent {
namespace {

// What stands before the reason in the text that TorchScript's interpreter makes.
constexpr std::string_view kTraceback = "Traceback of TorchScript";
constexpr std::string_view kReason = "\nRuntimeError: ";

}  // namespace

std::string reason_of(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = c10_error ? c10_error->what_without_backtrace() : error.what();
  text = text.substr(0, text.find("\nException raised from"));
  // Of these the first line says what is wrong, those after it how to debug PyTorch.
  if (const std::size_t cuda = text.find("CUDA error: "); cuda != std::string::npos)
    return text.substr(cuda, text.find('\n', cuda) - cuda);
  // The reason may go on for many lines, of which the first says it.
  if (const std::size_t trace = text.find(kTraceback); trace != std::string::npos) {
    const std::size_t reason = text.find(kReason, trace);
    if (reason != std::string::npos) text.erase(0, reason);
  }
  text.erase(0, text.find_first_not_of(" \n"));  // complaints about code begin with an empty line
  return text.substr(0, text.find('\n'));
}

}  // namespace decent
