#include "decent/comm/agreement.h"

#include "decent/comm/gather.h"
#include "decent/core/error.h"

namespace decent {

Outcome as_bug(const std::exception& error) { return {ExitCode::bug, error.what()}; }

void Agreement::agree(const std::string& name, const std::function<void()>& stage) const {
  throw_if_failed(attempt(name, stage));
}

std::vector<Outcome> Agreement::attempt(const std::string& name,
                                        const std::function<void()>& stage) const {
  const Outcome own = run(stage);
  std::vector<Outcome> outcomes;
  for (const std::string& bytes : tell(name, own, to_cbor(own))) {
    outcomes.push_back(from_cbor<Outcome>(bytes));
  }
  return outcomes;
}

// Whatever went wrong, the others must hear of it: they wait.
Outcome Agreement::run(const std::function<void()>& stage) const {
  try {
    stage();
    return {};
  } catch (...) {
    return outcome_of_error();
  }
}

Outcome Agreement::outcome_of_error() const {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::exception& error) {
    return explain_(error);
  }
}

std::vector<std::string> Agreement::tell(const std::string& name, const Outcome& own,
                                         std::string bytes) const {
  try {
    return share_(name, std::move(bytes));
  } catch (const PeerLost&) {
    // The other may have ended because of the same mistake, which says more.
    if (own.code != ExitCode::done) throw Error(own.code, own.message);
    throw;
  }
}

}  // namespace decent
