#pragma once
// The formats that come with the library, a file each.

#include "decent/data/formats.h"

namespace decent {

DataFormat builtin_format();      // digits.cpp
DataFormat safetensors_format();  // safetensors_source.cpp
DataFormat npz_format();          // npz_source.cpp
DataFormat images_format();       // images/images_source.cpp

}  // namespace decent
