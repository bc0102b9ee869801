#include "decent/core/cuda_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/version.h"

namespace decent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraryFile = "libdecent_cuda.so";
constexpr const char* kVariable = "DECENT_CUDA_LIBRARY";

// Where a build and an installed package keep the library, relative to the program file.
std::vector<fs::path> usual_places() {
  std::error_code failed;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  if (failed) return {};
  return {folder / kLibraryFile, folder.parent_path() / "lib" / kLibraryFile};
}

std::string loader_reason() {
  const char* text = ::dlerror();
  return text == nullptr ? "no reason given" : text;
}

// Resolves all symbols at once, so that a missing one is found here and not in the middle of a run.
void* open(const char* file) { return ::dlopen(file, RTLD_NOW | RTLD_LOCAL); }

[[noreturn]] void refuse(const std::string& reason) {
  if (reason.starts_with("libtorch_cuda.so:"))
    throw UserError("the LibTorch that this program runs with has no CUDA (" + reason +
                    "); docs/install.md says how to train on GPUs");
  throw UserError("the library for GPUs cannot be loaded: " + reason);
}

void* open_file(const fs::path& file) {
  if (void* library = open(file.c_str())) return library;
  refuse(loader_reason());
}

void* open_library() {
  if (const char* named = std::getenv(kVariable); named != nullptr && *named != '\0') {
    if (!fs::exists(named))
      throw UserError(std::string(kVariable) + " names '" + named + "', which is not there");
    return open_file(fs::absolute(named));  // without a slash the loader would search for it
  }
  std::vector<std::string> looked;
  for (const fs::path& file : usual_places()) {
    if (fs::exists(file)) return open_file(file);
    looked.push_back(file.parent_path().string());
  }
  if (void* library = open(kLibraryFile)) return library;
  const std::string reason = loader_reason();
  if (reason.find(std::string(kLibraryFile) + ": cannot open shared object file") ==
      std::string::npos)
    refuse(reason);
  looked.push_back("the folders of the system's loader");
  throw UserError(std::string(kLibraryFile) + ", the library for GPUs, was not found in " +
                  join(looked) + ". The variable " + kVariable + " may name it");
}

std::string path_of(void* library) {
  link_map* map = nullptr;
  return ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : kLibraryFile;
}

// The library shares C++ types with the program, so both must come from the same build.
void check_build(void* library) {
  void* address = ::dlsym(library, "decent_cuda_build_id");
  if (address == nullptr)
    throw UserError("'" + path_of(library) + "' is not decent-train's library for GPUs");
  const std::string_view id = reinterpret_cast<const char* (*)()>(address)();
  if (id == build_id()) return;
  throw UserError("'" + path_of(library) + "' is of build " + std::string(id) +
                  ", the program of build " + std::string(build_id()) +
                  ": build or install both at once");
}

struct Library {
  void* handle = nullptr;
  std::string problem;
};

Library load() {
  if (!DECENT_BUILT_WITH_CUDA)
    return {.handle = nullptr, .problem = "this program was built without CUDA"};
  try {
    void* handle = open_library();
    check_build(handle);
    return {.handle = handle, .problem = {}};
  } catch (const UserError& error) {
    return {.handle = nullptr, .problem = error.what()};
  }
}

}  // namespace

void* cuda_symbol(const char* name) {
  static const Library library = load();  // once, whichever thread is first
  if (library.handle == nullptr) throw UserError(library.problem);
  void* address = ::dlsym(library.handle, name);
  if (address == nullptr)
    throw std::logic_error(std::string(kLibraryFile) + " has no symbol " + name);
  return address;
}

}  // namespace decent
