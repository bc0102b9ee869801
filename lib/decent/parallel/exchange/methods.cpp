#include "decent/parallel/exchange/methods.h"

#include <algorithm>
#include <mutex>

#include "decent/core/error.h"
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

const ExchangeMethod* find(const std::vector<ExchangeMethod>& methods, std::string_view name) {
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [&](const ExchangeMethod& each) { return each.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

}  // namespace

void ExchangeOptions::check() const {
  if (slices < 1)
    throw UserError("slices is " + std::to_string(slices) + ": it must be >= 1 (1 is off)");
  if (modulo_range && !(*modulo_range > 0))
    throw UserError("modulo_range is " + std::to_string(*modulo_range) +
                    ": it must be greater than 0");
}

void register_exchange(ExchangeMethod method) {
  if (method.name.empty()) throw UserError("an exchange needs a name");
  if (!method.make) throw UserError("exchange '" + method.name + "': the function is empty");
  const std::lock_guard lock(table().mutex);
  if (find(table().methods, method.name) != nullptr)
    throw UserError("there is an exchange '" + method.name + "' already: choose another name");
  table().methods.push_back(std::move(method));
}

ExchangeMethod exchange_method(std::string_view name) {
  {
    const std::lock_guard lock(table().mutex);
    if (const ExchangeMethod* method = find(table().methods, name)) return *method;
  }
  throw UserError("unknown exchange '" + std::string(name) + "'; valid: " + join(exchange_names()));
}

std::vector<std::string> exchange_names() {
  const std::lock_guard lock(table().mutex);
  std::vector<std::string> names;
  for (const ExchangeMethod& method : table().methods) names.push_back(method.name);
  return names;
}

std::unique_ptr<Exchange> ExchangeChoice::make(ExchangeSetup setup) const {
  options.check();
  setup.options = options;
  std::unique_ptr<Exchange> exchange = make_ ? make_(setup) : nullptr;
  if (exchange == nullptr) throw UserError("options.exchange makes no exchange");
  return exchange;
}

}  // namespace decent
