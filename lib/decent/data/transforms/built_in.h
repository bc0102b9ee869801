#pragma once
// The transforms that come with the library, a file for each family.

#include "decent/data/transforms/transform.h"

namespace decent {

Transform resize_transform();               // resize.cpp
Transform center_crop_transform();          // crops.cpp
Transform random_crop_transform();          // crops.cpp
Transform random_resized_crop_transform();  // random_resized_crop.cpp
Transform flip_transform();                 // flip.cpp
Transform color_jitter_transform();         // color_jitter.cpp
Transform trivial_augment_transform();      // trivial_augment.cpp
Transform cutout_transform();               // cutout.cpp
Transform random_erasing_transform();       // random_erasing.cpp
Transform normalize_transform();            // normalize.cpp
Transform to_float_transform();             // normalize.cpp
Transform mixup_transform();                // mixup.cpp
Transform cutmix_transform();               // cutmix.cpp

}  // namespace decent
