#include "decent/model/formats.h"

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/file_extras.h"
#include "decent/model/model.h"
#include "decent/model/onnx/open.h"
#include "decent/model/pt2/open.h"
#include "decent/model/safetensors/save.h"
#include "decent/model/torchscript/open.h"
#include "decent/model/torchscript/save.h"

namespace decent {
namespace {

// In the order in which messages name them.
constexpr std::array kModelFormats = std::to_array<ModelFormat>({
    {"TorchScript", ".pt", open_torchscript, save_torchscript, data_in_archive,
     /*holds_scaling=*/true},
    {"safetensors", ".safetensors", nullptr,
     [](Model& model, const std::filesystem::path& path, const FileExtras& extras) {
       save_safetensors(model, path, extras);
     },
     data_in_safetensors},
    {"ONNX", ".onnx", open_onnx, nullptr, data_in_onnx},
    {"torch.export", ".pt2", open_pt2, nullptr, data_in_archive},
});
constexpr const ModelFormat& kFormatOfOtherNames = kModelFormats.front();

const ModelFormat& format_of(const std::filesystem::path& path) {
  const ModelFormat* named = find_model_format(path);
  return named != nullptr ? *named : kFormatOfOtherNames;
}

// "a, b or c".
std::string enumerated(std::vector<std::string> parts, const std::string& before_last) {
  const std::string last = std::move(parts.back());
  parts.pop_back();
  return parts.empty() ? last : join(parts) + " " + before_last + " " + last;
}

std::string enumerated_extensions(const std::function<bool(const ModelFormat&)>& counts) {
  std::vector<std::string> extensions;
  for (const ModelFormat& format : kModelFormats)
    if (counts(format)) extensions.emplace_back(format.extension);
  return enumerated(std::move(extensions), "or");
}

// "an .onnx file".
std::string file_with_article(const ModelFormat& format) {
  const bool begins_with_vowel =
      std::string_view("aeio").find(format.extension[1]) != std::string_view::npos;
  return (begins_with_vowel ? "an " : "a ") + std::string(format.extension) + " file";
}

[[noreturn]] void refuse_foreign_model(const Model& model, const ModelFormat& format) {
  const ModelFormat* own =
      is_written_back(model.path()) ? find_model_format(model.path()) : nullptr;
  const auto writes_this = [&](const ModelFormat& each) {
    return each.write != nullptr || &each == own;
  };
  throw UserError("model '" + model.path().string() + "' did not come from " +
                  file_with_article(format) +
                  ", so it cannot be exported in that format. --export writes it to " +
                  enumerated_extensions(writes_this));
}

}  // namespace

const ModelFormat* find_model_format(const std::filesystem::path& path) {
  for (const ModelFormat& format : kModelFormats) {
    if (path.extension() == format.extension) return &format;
  }
  return nullptr;
}

std::string trainable_formats() {
  std::vector<std::string> names;
  for (const ModelFormat& format : kModelFormats) {
    if (format.open != nullptr)
      names.push_back(std::string(format.name) + " (" + std::string(format.extension) + ")");
  }
  return enumerated(std::move(names), "and");
}

std::string written_extensions() {
  return enumerated_extensions([](const ModelFormat&) { return true; });
}

Model open_model(const std::filesystem::path& path, const ImportOptions& options) {
  const ModelFormat& format = format_of(path);
  if (format.open == nullptr) {
    check_is_file(path);
    refuse_model_file(path, "holds weights only, not a model: model.weights reads them");
  }
  return Model(path, format.open(path, options));
}

void write_model(Model& model, const std::filesystem::path& path) {
  write_model(model, path, FileExtras{});
}

void write_model(Model& model, const std::filesystem::path& path, const FileExtras& extras) {
  const ModelFormat* format = find_model_format(path);
  if (format == nullptr) {
    throw UserError("'" + path.string() + "': the file's name must end in " + written_extensions());
  }
  if (format->write != nullptr) return format->write(model, path, extras);
  if (find_model_format(model.path()) != format) refuse_foreign_model(model, *format);
  model.origin().write_back(model, path, extras);
}

std::string data_in_file(const std::filesystem::path& path) {
  return format_of(path).data_in(path);
}

bool holds_scaling(const std::filesystem::path& path) {
  const ModelFormat* format = find_model_format(path);
  return format != nullptr && format->holds_scaling;
}

bool is_written_back(const std::filesystem::path& path) {
  const ModelFormat* format = find_model_format(path);
  return format != nullptr && format->write == nullptr;
}

}  // namespace decent
