#pragma once
// The exchange methods by name: the built-in ones and those that a process registers.

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "decent/parallel/exchange/exchange.h"

namespace decent {

/// What an exchange costs each member of an edge, as a multiple of the bytes of the weights in
/// float32. With slices = K it is a K-th of that.
struct ExchangeCosts {
  double sent = 0;    // per step
  double memory = 0;  // besides the weights, for as long as the exchange object lives
  // The same if the members share memory; nullopt: the same number.
  std::optional<double> memory_sharing = std::nullopt;
};

/// A row of the table: name, factory and costs of a method.
struct ExchangeMethod {
  std::string name;
  ExchangeFactory make;
  /// For edges of 1, 2, .. members. An empty function: not known.
  std::function<ExchangeCosts(int members)> costs = nullptr;
  /// Whether a worker can decode a neighbour's message only if their weights are near. Such a
  /// method needs a schedule and an optimizer whose steps are bounded by the learning rate.
  bool needs_near_copies = false;
  /// Its own options: ExchangeOptions::own, and keys of the recipe's section `parallel`, which has
  /// no others of these names. Each has a default, and a phrase as its meaning.
  std::vector<OptionKey> keys = {};
};

/// Makes a method available by its name, in this process. All workers must register the same.
/// Throws UserError for an empty name, a name that is taken, a method without a factory, and an
/// option without a default. Any thread.
void register_exchange(ExchangeMethod method);

/// The method of that name. Throws UserError for an unknown one. Any thread.
ExchangeMethod exchange_method(std::string_view name);

/// The names that exchange_method knows: fp32, bf16, modulo2, modulo4, then those that were
/// registered.
std::vector<std::string> exchange_names();

/// A method as users choose it, by name or as a function that makes the exchange, with its options:
/// "bf16", {"modulo2", {.slices = 4}}.
class ExchangeChoice {
 public:
  /// Throws UserError as exchange_method does.
  ExchangeChoice(std::string_view name = "fp32", ExchangeOptions its_options = {})
      : ExchangeChoice(exchange_method(name), std::move(its_options)) {}
  ExchangeChoice(const char* name, ExchangeOptions its_options = {})
      : ExchangeChoice(std::string_view(name), std::move(its_options)) {}
  ExchangeChoice(const std::string& name, ExchangeOptions its_options = {})
      : ExchangeChoice(std::string_view(name), std::move(its_options)) {}
  /// One that need not be registered.
  explicit ExchangeChoice(const ExchangeMethod& method, ExchangeOptions its_options = {})
      : options(std::move(its_options)),
        make_(method.make),
        keys_(method.keys),
        needs_near_copies_(method.needs_near_copies) {}
  template <typename Factory>
    requires std::is_invocable_r_v<std::unique_ptr<Exchange>, Factory, const ExchangeSetup&>
  ExchangeChoice(Factory factory, ExchangeOptions its_options = {})
      : options(std::move(its_options)), make_(std::move(factory)) {}

  ExchangeOptions options;

  /// Throws UserError for `options` of another type or out of range, and for an option that no
  /// method has. The own options of a function are the function's to check.
  void check() const;

  /// Makes the exchange with `options` in place of those of the setup. Collective. Throws UserError
  /// as check() does, and if the user's function returns null.
  std::unique_ptr<Exchange> make(ExchangeSetup setup) const;
  /// The same with the options of the setup, which are checked already.
  std::unique_ptr<Exchange> make_with_options_of(const ExchangeSetup& setup) const;

  /// See ExchangeMethod. Nothing for a user's function, which may take any.
  const std::optional<std::vector<OptionKey>>& keys() const { return keys_; }
  /// Says that the factory checks its own options itself.
  void take_any_options() { keys_.reset(); }

  /// See ExchangeMethod. False for a user's function.
  bool needs_near_copies() const { return needs_near_copies_; }

 private:
  ExchangeFactory make_;
  std::optional<std::vector<OptionKey>> keys_ = {};  // none: of a user's function
  bool needs_near_copies_ = false;
};

}  // namespace decent
