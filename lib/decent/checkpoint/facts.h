#pragma once
// What a run states about itself, as topics and values. They are compared between workers, and with
// the facts in a checkpoint.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace decent {

/// Topics and their values, e.g. {"optimizer.lr", "0.001"}; each topic once.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The topic of a run whose recipe has a topology that does not fit the workers: the name of the
/// topology that it trains by instead.
inline const std::string kTopologyInEffect = "the topology in effect";

/// The value of a topic; empty if there is none.
std::string value_of(const Facts& facts, std::string_view topic);

/// A topic for which two sides have different values.
struct FactDifference {
  std::string topic;
  std::optional<std::string> here;  // nothing: this side lacks the topic
  std::optional<std::string> there;
};

/// First the topics of `here`, in its order, then the topics that only `there` has, in its order.
std::vector<FactDifference> differences(const Facts& here, const Facts& there);

/// Whether a topic that both sides know has two values. A topic that only one side knows, such as a
/// newer program, contradicts nothing.
bool contradict(const Facts& one, const Facts& other);

/// A value short enough for a message.
std::string shorten(const std::string& value);

/// The first lines of a list, each on a line of its own and indented, and how many more there are.
std::string first_lines(const std::vector<std::string>& lines);

}  // namespace decent
