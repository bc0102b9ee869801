#include "decent/pt2/analyse/noise.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "decent/pt2/analyse/nodes.h"

namespace decent::pt2 {
namespace {

std::string operator_of(const Node& node) { return parse_target(node.target).operator_name(); }

const std::string* name_in(const Node& node, std::string_view input) {
  const Argument* argument = node.find(input);
  return argument == nullptr ? nullptr : value_name(*argument);
}

std::optional<double> number_in(const Node& node, std::string_view input) {
  const Argument* argument = node.find(input);
  const auto* number = argument == nullptr ? nullptr : std::get_if<double>(argument);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

const std::string* result_of(const Node& node) {
  return node.outputs.empty() ? nullptr : value_name(node.outputs.front());
}

bool is_in_place(const Node& node) {
  const std::string name = parse_target(node.target).name;
  return !name.empty() && name.back() == '_';
}

bool divides_by(const Node& node, double p) {
  const std::string name = operator_of(node);
  return (name == "aten.div" || name == "aten.div_") && number_in(node, "other") == p &&
         node.find("rounding_mode") == nullptr;
}

bool is_random(const std::string& name) { return name == "aten.bernoulli_"; }
bool is_floor(const std::string& name) { return name == "aten.floor" || name == "aten.floor_"; }

class NoiseFinder {
 public:
  explicit NoiseFinder(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (const Argument& result : results_of(node)) {
        if (const std::string* name = value_name(result)) makers_.emplace(*name, &node);
      }
      for (const NamedArgument& input : node.inputs) {
        if (const std::string* name = value_name(input.value)) readers_[*name].push_back(&node);
      }
    }
  }

  std::optional<Noise> noise_of(const Node& node) const {
    auto noise = zeros_and_ones(node);
    if (!noise) return std::nullopt;
    const double p = noise->in_evaluation;
    const std::vector<const Node*> readers = readers_of(node);
    const auto divides = [&](const Node* reader) { return divides_by(*reader, p); };
    const bool is_scaled = std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
      return divides(reader) && is_in_place(*reader);
    });
    if (readers.empty()) return std::nullopt;
    if (is_scaled || std::all_of(readers.begin(), readers.end(), divides)) return noise;
    for (const Node* reader : readers) {
      const Node* divisor = divisor_beside(*reader, node, p);
      if (divisor == nullptr) return std::nullopt;
      noise->divisors.push_back(divisor);
    }
    noise->in_evaluation = 1;
    return noise;
  }

 private:
  // `in_evaluation` is the probability of ones for now.
  std::optional<Noise> zeros_and_ones(const Node& node) const {
    const std::string name = operator_of(node);
    // A file omits p if it has the default value.
    if (is_random(name)) return Noise{&node, &node, number_in(node, "p").value_or(0.5)};
    const Node* sum = is_floor(name) ? maker_of(node, "self") : nullptr;
    if (sum == nullptr || operator_of(*sum) != "aten.add" || sum->find("alpha") != nullptr)
      return std::nullopt;
    const Node* rand = maker_of(*sum, "self");
    const std::optional<double> p = number_in(*sum, "other");
    if (rand == nullptr || operator_of(*rand) != "aten.rand" || !p || *p <= 0 || *p >= 1)
      return std::nullopt;
    return Noise{&node, rand, *p};
  }

  const Node* maker_of(const Node& node, std::string_view input) const {
    const std::string* name = name_in(node, input);
    const auto found = name == nullptr ? makers_.end() : makers_.find(*name);
    return found == makers_.end() ? nullptr : found->second;
  }

  // The readers of a node's result or of the tensor that it wrote into, which is the same value.
  // Empty if there are many: noise has one reader or two, and an untrusted file must not cost the
  // square of its size.
  std::vector<const Node*> readers_of(const Node& node) const {
    constexpr std::size_t kMaxReaders = 16;
    std::vector<const Node*> readers;
    const auto add = [&](const std::string* name) {
      const auto found = name == nullptr ? readers_.end() : readers_.find(*name);
      if (found == readers_.end() || found->second.size() > kMaxReaders) return;
      std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(readers),
                   [&](const Node* reader) { return reader > &node; });  // in the order of a graph
    };
    add(result_of(node));
    if (is_in_place(node)) add(name_in(node, "self"));
    return readers;
  }

  // For a product with the noise: the node that divides the other factor by p, and is read by this
  // product only.
  const Node* divisor_beside(const Node& product, const Node& noise, double p) const {
    const std::string name = operator_of(product);
    if (name != "aten.mul" && name != "aten.mul_") return nullptr;
    for (const char* factor : {"self", "other"}) {
      const Node* made = maker_of(product, factor);
      if (made == nullptr || made == &noise || !divides_by(*made, p)) continue;
      if (readers_of(*made) == std::vector<const Node*>{&product}) return made;
    }
    return nullptr;
  }

  std::map<std::string, const Node*, std::less<>> makers_;
  std::map<std::string, std::vector<const Node*>, std::less<>> readers_;
};

}  // namespace

std::vector<Noise> find_noise(const Graph& graph) {
  const auto may_be = [](const Node& node) {
    const std::string name = operator_of(node);
    return is_random(name) || is_floor(name);
  };
  std::vector<Noise> all;
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), may_be)) return all;
  const NoiseFinder finder(graph);
  for (const Node& node : graph.nodes) {
    if (!may_be(node)) continue;
    if (auto noise = finder.noise_of(node)) all.push_back(std::move(*noise));
  }
  return all;
}

}  // namespace decent::pt2
