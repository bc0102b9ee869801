#include "decent/task/model_report.h"

#include "decent/model/onnx_import.h"

namespace decent {

std::vector<std::string> model_report(const Task& task, bool full) {
  const OnnxImport* import = task.model->onnx();
  if (import == nullptr) return {};
  return import_report(*import, full ? onnx::Detail::full : onnx::Detail::brief);
}

}  // namespace decent
