#include "decent/onnx/format/ir.h"

namespace decent::onnx {

const std::string& NameList::operator[](std::size_t place) const {
  static const std::string left_out;
  return place < names_.size() ? names_[place] : left_out;
}

}  // namespace decent::onnx
