#include "decent/pt2/analyse/custom_gradients.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

#include "decent/core/text.h"
#include "decent/pt2/analyse/nodes.h"

namespace decent::pt2 {
namespace {

/// A call of a traceback, outermost first: 'File "model.py", line 20, in forward' and its code.
struct Frame {
  std::string_view path;
  std::string_view function;
  std::string_view code;
};

constexpr std::string_view kFile = "File \"";
// Part of the path of the file that calls the model in such an export.
constexpr std::string_view kExports = "packages/torch/_dynamo/";
constexpr std::string_view kApply = ".apply(";
// The file through which an export with strict=True runs the forward of a torch.autograd.Function.
constexpr std::string_view kRunsFunctions = "torch/_functorch/autograd_function.py";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

// `text` begins after 'File "'.
Frame frame_of(std::string_view text) {
  constexpr std::string_view kIn = ", in ";
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view head = text.substr(0, end);
  const std::size_t in = head.rfind(kIn);
  return {.path = head.substr(0, head.find('"')),
          .function = in == head.npos ? "" : trimmed(head.substr(in + kIn.size())),
          .code = trimmed(text.substr(end))};
}

std::vector<Frame> frames_of(std::string_view trace) {
  std::vector<Frame> frames;
  for (std::size_t at = trace.find(kFile); at != trace.npos; at = trace.find(kFile)) {
    trace.remove_prefix(at + kFile.size());
    const Frame frame = frame_of(trace.substr(0, trace.find(kFile)));
    if (frame.path.find(kExports) == std::string_view::npos) frames.push_back(frame);
  }
  return frames;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The name that ends where `text` does, with its dots: "fn.Reverse" of "y = fn.Reverse".
std::string_view last_name(std::string_view text) {
  const auto begin =
      std::find_if_not(text.rbegin(), text.rend(), [](char c) { return is_name(c) || c == '.'; });
  return text.substr(static_cast<std::size_t>(text.rend() - begin));
}

std::size_t modules_at(const Node& node) {
  const auto stack = node.metadata.find("nn_module_stack");
  if (stack == node.metadata.end() || stack->second.empty()) return 0;
  return static_cast<std::size_t>(std::count(stack->second.begin(), stack->second.end(), ';')) + 1;
}

bool is_forward(const Frame& frame) { return frame.function == "forward"; }

// The code that calls the forward in frame `i`, if that is not a module's forward; "" otherwise.
// `is_extra`: there have been more calls of a forward than modules.
std::string_view custom_function(const std::vector<Frame>& frames, std::size_t i, bool is_extra) {
  // PyTorch's own functions, such as checkpointing, have the gradient of their forward.
  if (i == 0 || frames[i].path.find("packages/torch/") != std::string_view::npos) return "";
  const Frame& caller = frames[i - 1];
  const bool is_strict = caller.path.ends_with(kRunsFunctions);
  const std::string_view code = is_strict && i > 1 ? frames[i - 2].code : caller.code;
  const std::size_t apply = code.find(kApply);
  if (apply != code.npos) return last_name(code.substr(0, apply));
  // Called by another name, as after reverse = Reverse.apply. Code may also call a module's forward
  // by name.
  const bool is_called_by_name = code.find("forward") != code.npos;
  return is_strict || (is_extra && !is_called_by_name) ? code : "";
}

std::vector<std::string_view> custom_functions(const Node& node, std::string_view trace) {
  const std::vector<Frame> frames = frames_of(trace);
  const std::size_t modules = modules_at(node);
  std::vector<std::string_view> found;
  std::size_t forwards = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (!is_forward(frames[i])) continue;
    ++forwards;
    const bool is_extra = modules != 0 && forwards > modules;
    const std::string_view name = custom_function(frames, i, is_extra);
    if (!name.empty()) found.push_back(name);
  }
  return found;
}

}  // namespace

std::vector<std::string> find_custom_gradients(const ExportedProgram& program) {
  std::vector<std::string> found;
  std::set<std::string> seen;
  for_each_graph(program.graph, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      const auto trace = node.metadata.find("stack_trace");
      if (trace == node.metadata.end()) continue;
      for (const std::string_view each : custom_functions(node, trace->second)) {
        std::string name = on_one_line(each);
        if (seen.insert(name).second) found.push_back(std::move(name));
      }
    }
  });
  return found;
}

}  // namespace decent::pt2
