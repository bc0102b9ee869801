#include "decent/core/random_name.h"

#include <random>

namespace decent {

std::string random_name(std::size_t digits) {
  std::random_device device;
  std::uniform_int_distribution<int> digit(0, 15);
  std::string name(digits, '0');
  for (char& each : name) each = "0123456789abcdef"[digit(device)];
  return name;
}

}  // namespace decent
