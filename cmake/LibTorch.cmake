# LibTorch from the torch wheel as the imported target decent::torch: for this project's build, and as a part of the
# installed package for those who build against it.
#
# Not find_package(Torch): on a CUDA wheel that needs a CUDA toolkit even for CPU code, runs a C++20 .cu probe that
# CMake 3.25 cannot compile, and always links libtorch_cuda, which costs 350 MB of resident memory at start.
#
# DECENT_TORCH_ROOT: the wheel's torch folder. Where it is not given: the one that Torch_DIR lies in, else the one that
# DECENT_PYTHON imports, else decent_torch_fallback.
# Afterwards decent_torch_version is its version ("2.11.0"), or decent_torch_problem says why there is no target.

unset(decent_torch_problem)

if(NOT DECENT_TORCH_ROOT AND Torch_DIR)
  get_filename_component(torch_root "${Torch_DIR}/../../.." ABSOLUTE)
elseif(NOT DECENT_TORCH_ROOT)
  execute_process(
    COMMAND "${DECENT_PYTHON}" -c
            "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
    OUTPUT_VARIABLE torch_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(torch_root "${decent_torch_fallback}")
  endif()
  if(NOT torch_root)
    set(decent_torch_problem "no torch wheel: '${DECENT_PYTHON}' cannot find the package torch.")
    return()
  endif()
endif()
if(NOT DECENT_TORCH_ROOT)
  set(DECENT_TORCH_ROOT "${torch_root}" CACHE PATH "The torch folder of the wheel")
endif()

foreach(library c10 torch_cpu)
  if(NOT EXISTS "${DECENT_TORCH_ROOT}/lib/lib${library}.so")
    set(decent_torch_problem "DECENT_TORCH_ROOT '${DECENT_TORCH_ROOT}' is not the torch folder of a wheel: "
                             "it has no lib/lib${library}.so.")
    list(JOIN decent_torch_problem "" decent_torch_problem)
    return()
  endif()
endforeach()

set(decent_torch_version "")
foreach(file version.py build-version)  # of the wheel, of LibTorch's own archive
  if(NOT decent_torch_version AND EXISTS "${DECENT_TORCH_ROOT}/${file}")
    file(STRINGS "${DECENT_TORCH_ROOT}/${file}" lines REGEX "[0-9]+\\.[0-9]+\\.[0-9]+")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" decent_torch_version "${lines}")
  endif()
endforeach()

if(TARGET decent::torch)
  return()
endif()

foreach(library c10 torch_cpu)
  add_library(decent::lib_${library} SHARED IMPORTED GLOBAL)
  set_target_properties(decent::lib_${library} PROPERTIES
    IMPORTED_LOCATION "${DECENT_TORCH_ROOT}/lib/lib${library}.so" IMPORTED_NO_SONAME FALSE)
endforeach()

# Imported, so that its headers are the system's to the compiler, and so that the installed package names it without
# saying where this machine has it.
add_library(decent::torch INTERFACE IMPORTED GLOBAL)
target_include_directories(decent::torch INTERFACE
  "${DECENT_TORCH_ROOT}/include" "${DECENT_TORCH_ROOT}/include/torch/csrc/api/include")
target_compile_definitions(decent::torch INTERFACE USE_DISTRIBUTED)
target_link_libraries(decent::torch INTERFACE decent::lib_torch_cpu decent::lib_c10)

# The wheel's libraries need the NVIDIA wheels beside it, found through their own RPATH at run time and through
# rpath-link at link time. DT_RPATH, not DT_RUNPATH: an exported LD_LIBRARY_PATH must not swap LibTorch.
file(GLOB nvidia_lib_dirs "${DECENT_TORCH_ROOT}/../nvidia/*/lib")
foreach(dir IN LISTS nvidia_lib_dirs)
  target_link_options(decent::torch INTERFACE "LINKER:-rpath-link,${dir}")
endforeach()
target_link_options(decent::torch INTERFACE "LINKER:--disable-new-dtags")
