#include "decent/comm/launch.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "decent/core/error.h"

namespace decent {
namespace {

int to_integer(const std::string& name, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UserError("the launcher's variable " + name + " is '" + text +
                    "': expected an integer from " + std::to_string(least) + " to " +
                    std::to_string(most));
  }
  return value;
}

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  int required(const std::string& name, int least, int most) const {
    const auto text = variables_(name);
    if (!text) {
      throw UserError("the launcher set only some of its variables: " + name +
                      " is missing.\nStart with torchrun, or set RANK, WORLD_SIZE, LOCAL_RANK, "
                      "LOCAL_WORLD_SIZE, "
                      "MASTER_ADDR and MASTER_PORT; with none of them set, one worker runs.");
    }
    return to_integer(name, *text, least, most);
  }

  int optional(const std::string& name, int least, int most, int otherwise) const {
    const auto text = variables_(name);
    return text ? to_integer(name, *text, least, most) : otherwise;
  }

  std::string text(const std::string& name) const { return variables_(name).value_or(""); }

 private:
  const Variables& variables_;
};

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    if (comma > begin) parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

constexpr int kMaxWorkers = 1 << 20;
constexpr int kMaxDescriptor = 1 << 20;

}  // namespace

Launch read_launch(const Variables& variables) {
  const Reader reader(variables);
  Launch launch;
  launch.supervisor = reader.optional(kSupervisorVariable, 0, kMaxDescriptor, -1);
  launch.store_listener = reader.optional(kStoreListenerVariable, 0, kMaxDescriptor, -1);
  launch.torchrun = variables("TORCHELASTIC_RUN_ID").has_value();
  launch.interfaces = split_at_commas(reader.text("GLOO_SOCKET_IFNAME"));
  if (!variables("RANK") && !variables("WORLD_SIZE")) return launch;

  launch.world_size = reader.required("WORLD_SIZE", 1, kMaxWorkers);
  launch.rank = reader.required("RANK", 0, launch.world_size - 1);
  if (launch.world_size == 1) return launch;
  launch.local_world_size = reader.required("LOCAL_WORLD_SIZE", 1, launch.world_size);
  launch.local_rank = reader.required("LOCAL_RANK", 0, launch.local_world_size - 1);
  launch.master_addr = reader.text("MASTER_ADDR");
  if (launch.master_addr.empty()) reader.required("MASTER_ADDR", 0, 0);
  launch.master_port = reader.required("MASTER_PORT", 1, 65535);
  launch.agent_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const int attempt = reader.optional("TORCHELASTIC_RESTART_COUNT", 0, kMaxWorkers, 0);
  // The prefix that torch.distributed uses on torchrun's store.
  if (launch.agent_store) launch.store_prefix = "/worker/attempt_" + std::to_string(attempt);
  return launch;
}

Launch read_launch() {
  return read_launch([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
}

}  // namespace decent
