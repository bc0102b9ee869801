#pragma once
// The built-in data set: 1797 handwritten digits of 8x8 pixels. It is part of the program, so that
// a first run needs no files. Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak,
// UCI Machine Learning Repository (https://doi.org/10.24432/C50P49), CC BY 4.0; the test part, as
// shipped with scikit-learn.

#include <memory>

#include "decent/data/source.h"

namespace decent {

/// Fields: x float32 [1, 8, 8], pixels divided by 16 into [0, 1]; y int64 [], the digit. Every
/// fifth sample of each class, in the order of the file, belongs to the test part (355), the others
/// to the training part (1442). Both parts keep that order.
std::unique_ptr<Source> open_digits(bool train);

}  // namespace decent
