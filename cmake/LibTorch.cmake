# LibTorch from the torch wheel as the imported target decent::torch.
#
# Not find_package(Torch): on a CUDA wheel that needs a CUDA toolkit even for CPU code, runs a C++20 .cu probe that
# CMake 3.25 cannot compile, and always links libtorch_cuda, which costs 350 MB of resident memory at start.
#
# DECENT_TORCH_ROOT: the wheel's torch folder; found through DECENT_PYTHON where it is not given.

set(DECENT_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH
    "The Python that has the torch wheel (and the packages that the tests need)")

if(NOT DECENT_TORCH_ROOT)
  execute_process(
    COMMAND "${DECENT_PYTHON}" -c
            "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
    OUTPUT_VARIABLE torch_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "no torch wheel: '${DECENT_PYTHON}' cannot find the package torch. "
                        "Run tools/setup, or name another Python with -DDECENT_PYTHON=...")
  endif()
  set(DECENT_TORCH_ROOT "${torch_root}" CACHE PATH "The torch folder of the wheel")
endif()

foreach(library c10 torch_cpu)
  add_library(decent::lib_${library} SHARED IMPORTED GLOBAL)
  set_target_properties(decent::lib_${library} PROPERTIES
    IMPORTED_LOCATION "${DECENT_TORCH_ROOT}/lib/lib${library}.so" IMPORTED_NO_SONAME FALSE)
endforeach()

find_path(GLOO_INCLUDE_DIR gloo/algorithm.h REQUIRED)  # headers only: the code is inside libtorch_cpu

add_library(decent_torch INTERFACE)
add_library(decent::torch ALIAS decent_torch)
target_include_directories(decent_torch SYSTEM INTERFACE
  "${DECENT_TORCH_ROOT}/include" "${DECENT_TORCH_ROOT}/include/torch/csrc/api/include"
  "${GLOO_INCLUDE_DIR}")
target_compile_definitions(decent_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
target_link_libraries(decent_torch INTERFACE decent::lib_torch_cpu decent::lib_c10)

# The wheel's libraries need the NVIDIA wheels beside it, found through their own RPATH at run time and through
# rpath-link at link time. DT_RPATH, not DT_RUNPATH: an exported LD_LIBRARY_PATH must not swap LibTorch.
file(GLOB nvidia_lib_dirs "${DECENT_TORCH_ROOT}/../nvidia/*/lib")
foreach(dir IN LISTS nvidia_lib_dirs)
  target_link_options(decent_torch INTERFACE "LINKER:-rpath-link,${dir}")
endforeach()
target_link_options(decent_torch INTERFACE "LINKER:--disable-new-dtags")
