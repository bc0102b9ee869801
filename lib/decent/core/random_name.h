#pragma once
// Names that nothing else has.

#include <cstddef>
#include <string>

namespace decent {

/// Random hexadecimal digits; 32 of them are 128 bits, which no other call on any machine returns
/// again.
std::string random_name(std::size_t digits = 32);

}  // namespace decent
