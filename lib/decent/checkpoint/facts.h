#pragma once
// What a run says of itself, as topics and values: compared between workers, and with what a
// checkpoint says.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace decent {

/// Topics and their values, e.g. {"optimizer.lr", "0.001"}; each topic once.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The topic of a checksum of samples, before "data.train" or "data.eval".
inline const std::string kContentTopic = "the content of ";

/// The topic of a number of samples, before the same.
inline const std::string kSamplesTopic = "the number of samples of ";

/// The topic of the transforms of the target, which give an evaluation's metrics their unit.
inline const std::string kTargetTopic = "the transforms of the target";

/// The topic of the learning rates of all steps.
inline const std::string kRatesTopic = "the learning rates";

/// The topic of who is on which machine, of runs to which that matters.
inline const std::string kPlacementTopic = "the placement of workers on machines";

/// The value of a topic; empty where there is none.
std::string value_of(const Facts& facts, std::string_view topic);

/// A topic of which two sides do not say the same.
struct FactDifference {
  std::string topic;
  std::optional<std::string> here;  // nothing: this side lacks the topic
  std::optional<std::string> there;
};

/// Those of `here` in its order, then those that are only `there` in its order.
std::vector<FactDifference> differences(const Facts& here, const Facts& there);

/// Whether a topic that both sides know has two values. A topic that only one side knows, such as a
/// newer program, contradicts nothing.
bool contradict(const Facts& one, const Facts& other);

/// A value short enough for a message.
std::string shorten(const std::string& value);

/// The first lines of a list, each on a line of its own and indented, with the number of those that
/// are left out.
std::string first_lines(const std::vector<std::string>& lines);

}  // namespace decent
