#include "decent/task/model_report.h"

#include "decent/model/onnx/import.h"

namespace decent {

std::vector<std::string> model_report(const Setup& setup, bool full) {
  const OnnxImport* import = setup.model->onnx();
  if (import == nullptr) return {};
  return import_report(*import, full ? onnx::Detail::full : onnx::Detail::brief);
}

}  // namespace decent
