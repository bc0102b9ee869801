#include "decent/model/safetensors/save.h"

#include <map>
#include <string>

#include "decent/model/tensor_file.h"

namespace decent {

void save_safetensors(const Model& model, const std::filesystem::path& path,
                      const FileExtras& extras) {
  std::map<std::string, std::string> metadata;
  if (!extras.data.empty()) metadata[kDataInFile] = extras.data;
  save_tensors(model.state(), path, metadata);
}

}  // namespace decent
