#pragma once
// The methods that come with the library.

#include "decent/parallel/exchange/methods.h"

namespace decent {

ExchangeMethod fp32_exchange();     // fp32.cpp
ExchangeMethod bf16_exchange();     // bf16.cpp
ExchangeMethod modulo2_exchange();  // modulo.cpp
ExchangeMethod modulo4_exchange();  // modulo.cpp

}  // namespace decent
