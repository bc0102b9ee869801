#pragma once
// The formats that come with the library, each in a file of its own.

#include "decent/data/formats.h"

namespace decent {

DataFormat builtin_format();      // digits.cpp
DataFormat safetensors_format();  // safetensors_source.cpp
DataFormat npz_format();          // npz_source.cpp
DataFormat idx_format();          // formats/idx_source.cpp
DataFormat tokens_format();       // formats/tokens_source.cpp
DataFormat text_format();         // formats/text_source.cpp
DataFormat csv_format();          // csv/csv_format.cpp
DataFormat pairs_format();        // formats/pairs_format.cpp
DataFormat images_format();       // images/images_source.cpp
DataFormat webdataset_format();   // images/webdataset.cpp

}  // namespace decent
