#pragma once
// The message that a user gets for a mistake.

#include <gtest/gtest.h>

#include <string>

#include "decent/core/error.h"

namespace decent::testing {

/// The message of the mistake that `act` makes, or "accepted".
template <typename Act>
std::string refusal(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::user_error);
    return error.what();
  }
  return "accepted";
}

}  // namespace decent::testing
