#include "decent/parallel/exchange/methods.h"

#include <mutex>

#include "decent/core/error.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"
#include "decent/parallel/exchange/built_in.h"

namespace decent {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<ExchangeMethod> methods = {fp32_exchange(), bf16_exchange(), modulo2_exchange(),
                                         modulo4_exchange()};
};

Table& table() {
  static Table methods;
  return methods;
}

}  // namespace

void register_exchange(ExchangeMethod method) {
  if (method.name.empty()) throw UserError("an exchange needs a name");
  if (!method.make) throw UserError("exchange '" + method.name + "': the function is empty");
  for (const OptionKey& key : method.keys) {
    if (!key.fallback)
      throw UserError("exchange '" + method.name + "': the option '" + key.name +
                      "' needs a default, which recipes with other exchanges have");
  }
  const std::lock_guard lock(table().mutex);
  if (find_named(table().methods, method.name) != nullptr)
    throw UserError("there is an exchange '" + method.name + "' already: choose another name");
  table().methods.push_back(std::move(method));
}

ExchangeMethod exchange_method(std::string_view name) {
  {
    const std::lock_guard lock(table().mutex);
    if (const ExchangeMethod* method = find_named(table().methods, name)) return *method;
  }
  throw UserError("unknown exchange '" + std::string(name) + "'; valid: " + join(exchange_names()));
}

std::vector<std::string> exchange_names() {
  const std::lock_guard lock(table().mutex);
  return names_in(table().methods);
}

void ExchangeChoice::check() const {
  if (options.slices < 1)
    throw UserError("slices is " + std::to_string(options.slices) + ": it must be >= 1 (1 is off)");
  if (!keys_) return;
  std::vector<NamedOptions> known = {{.name = "", .keys = *keys_}};
  for (const std::string& name : exchange_names())
    known.push_back({.name = name, .keys = exchange_method(name).keys});
  check_known(options.own, known, "exchange");
  for (const OptionKey& key : *keys_)
    if (const OptionValue* value = options.own.find(key.name)) check_option(key, *value);
}

std::unique_ptr<Exchange> ExchangeChoice::make(ExchangeSetup setup) const {
  check();
  setup.options = options;
  return make_with_options_of(setup);
}

std::unique_ptr<Exchange> ExchangeChoice::make_with_options_of(const ExchangeSetup& setup) const {
  std::unique_ptr<Exchange> exchange = make_ ? make_(setup) : nullptr;
  if (exchange == nullptr) throw UserError("options.exchange makes no exchange");
  return exchange;
}

}  // namespace decent
