#pragma once
// The ways to exchange weights, by name: ours, and those that a process registers.

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "decent/parallel/exchange/exchange.h"

namespace decent {

/// What the exchanges of an edge cost each of its members, over the bytes of its float32 weights.
struct ExchangeCosts {
  double sent = 0;    // in a step
  double memory = 0;  // for as long as the exchange lives, besides the weights
};

/// A row of the table: what a method is called, how it is made, what it costs.
struct ExchangeMethod {
  std::string name;  // as the recipe's parallel.comm_dtype has it
  ExchangeFactory make;
  /// For edges of 1, 2, .. members. Empty: not known.
  std::function<ExchangeCosts(int members)> costs = nullptr;
};

/// Makes a method known by its name, for this process; all workers register the same. Throws
/// UserError for an empty name, one that is taken, and a method without a factory. Any thread.
void register_exchange(ExchangeMethod method);

/// The method of that name. Throws UserError for an unknown one. Any thread.
ExchangeMethod exchange_method(std::string_view name);

/// The names that exchange_method knows: fp32, bf16, then those that were registered.
std::vector<std::string> exchange_names();

/// A method as users choose it: by its name, or as a function that makes the exchange.
class ExchangeChoice {
 public:
  /// Throws UserError as exchange_method does.
  ExchangeChoice(std::string_view name = "fp32") : make_(exchange_method(name).make) {}
  ExchangeChoice(const char* name) : ExchangeChoice(std::string_view(name)) {}
  ExchangeChoice(const std::string& name) : ExchangeChoice(std::string_view(name)) {}
  template <typename Factory>
  requires std::is_invocable_r_v < std::unique_ptr<Exchange>, Factory,
  const ExchangeSetup& > ExchangeChoice(Factory factory) : make_(std::move(factory)) {}

  /// Collective. Throws UserError where a function of the user's makes none.
  std::unique_ptr<Exchange> make(const ExchangeSetup& setup) const;

 private:
  ExchangeFactory make_;
};

}  // namespace decent
