#pragma once
// Exchanges of random groups of workers, with random sizes and delays, whose every word is checked.
//
// A worker has several lanes, which are threads with exchanges of their own. In round k a lane's
// workers are split into groups, and each group does one of the things named in storm.cpp. All of
// that follows from the seed, the lane and k, so nobody has to be told what the others do.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "decent/comm/shared_memory/mail.h"

namespace decent::storm {

struct Plan {
  std::uint64_t seed = 1;
  std::size_t workers = 4;
  std::size_t lanes = 2;
  std::int64_t exchanges = 0;  // of all lanes together: what a group does in a round is one
};

using Flags = std::map<std::string, std::int64_t>;

/// The values of flags, each of which is a number. Throws std::invalid_argument at one that is not
/// among the defaults.
Flags flags_of(std::span<char*> arguments, Flags defaults);
Plan plan_of(const Flags& flags);

/// What the worker of `mail` does, all lanes of it. Throws the first error of a lane: PeerLost if
/// another worker is gone, std::logic_error if a message has the wrong content.
void run(const Plan& plan, const std::shared_ptr<Mail>& mail);

}  // namespace decent::storm
