# What needs CUDA is a shared library of its own, libdecent_cuda.so (lib/decent/cuda), which the program loads when a GPU
# is asked for. Here it is decided whether it is built.
#
# DECENT_CUDA: ON builds it or says what is missing; AUTO, the default, builds it where the torch wheel has its CUDA half
# and there is an nvcc for it; OFF looks for nothing of CUDA and runs no nvcc.
# nvcc is the one that CMAKE_CUDA_COMPILER or CUDACXX names, else the Python environment's (tools/setup installs it from
# PyPI, beside the CUDA libraries that torch brings), else that of /usr/local/cuda, else the one in PATH.
# Afterwards decent_cuda is ON, and there are the language CUDA, the target decent::torch_cuda and the folder of its
# libcudart, decent_cuda_runtime_folder; or decent_cuda is OFF.

set(DECENT_CUDA AUTO CACHE STRING "Build libdecent_cuda.so: AUTO, ON or OFF")
set_property(CACHE DECENT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(decent_cuda OFF)
if(NOT DECENT_CUDA)
  message(STATUS "CUDA: not built, as DECENT_CUDA is ${DECENT_CUDA}")
  return()
endif()

set(cuda_problem "")
file(STRINGS "${DECENT_TORCH_ROOT}/version.py" wheel_cuda REGEX "^cuda")
string(REGEX MATCH "[0-9]+\\.[0-9]+" wheel_cuda "${wheel_cuda}")
string(REGEX MATCH "^[0-9]+" wheel_major "${wheel_cuda}")
get_filename_component(nvidia "${DECENT_TORCH_ROOT}/../nvidia" ABSOLUTE)
file(GLOB wheel_cudart "${nvidia}/cu*/lib/libcudart.so.*")
if(NOT EXISTS "${DECENT_TORCH_ROOT}/lib/libtorch_cuda.so")
  set(cuda_problem "the torch wheel in ${DECENT_TORCH_ROOT} is one without CUDA (no lib/libtorch_cuda.so)")
elseif(NOT wheel_cudart OR NOT EXISTS "${nvidia}/nccl/include/nccl.h")
  set(cuda_problem "the CUDA libraries that torch brings (nvidia-cuda-runtime, nvidia-nccl) are not beside ${DECENT_TORCH_ROOT}")
endif()

if(NOT cuda_problem AND NOT CMAKE_CUDA_COMPILER)
  if(NOT "$ENV{CUDACXX}" STREQUAL "")
    find_program(CMAKE_CUDA_COMPILER "$ENV{CUDACXX}")
  else()
    file(GLOB wheel_nvcc_folders "${nvidia}/cu*/bin")
    find_program(CMAKE_CUDA_COMPILER nvcc PATHS ${wheel_nvcc_folders} /usr/local/cuda/bin NO_DEFAULT_PATH)
    find_program(CMAKE_CUDA_COMPILER nvcc)
  endif()
endif()

if(NOT cuda_problem AND NOT CMAKE_CUDA_COMPILER AND NOT "$ENV{CUDACXX}" STREQUAL "")
  unset(CMAKE_CUDA_COMPILER CACHE)  # looked for again next time
  set(cuda_problem "CUDACXX names '$ENV{CUDACXX}', which is not there")
elseif(NOT cuda_problem AND NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE)
  set(cuda_problem "there is no nvcc in ${nvidia} (tools/setup installs it on machines with an NVIDIA GPU, and with --tests), in /usr/local/cuda or in PATH; CUDACXX may name one")
elseif(NOT cuda_problem)
  execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" found "${nvcc_text}")
  set(nvcc_release "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
  if(NOT CMAKE_MATCH_1 STREQUAL wheel_major)
    set(cuda_problem "'${CMAKE_CUDA_COMPILER}' is of CUDA ${nvcc_release}, the torch wheel of CUDA ${wheel_cuda}: their first numbers must be equal; CUDACXX may name another nvcc")
  endif()
endif()

if(cuda_problem AND DECENT_CUDA STREQUAL "AUTO")
  message(STATUS "CUDA: not built, as ${cuda_problem}")
  return()
elseif(cuda_problem)
  message(FATAL_ERROR "DECENT_CUDA is ${DECENT_CUDA}, but ${cuda_problem}.")
endif()

# Turing, Ampere (A100), Hopper and, where nvcc knows them, both kinds of Blackwell (B200, RTX 50) as machine code; Hopper
# as PTX, too, which drivers compile for others, at the first start.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
  if(nvcc_release VERSION_GREATER_EQUAL 12.8)
    list(APPEND CMAKE_CUDA_ARCHITECTURES 100-real 120-real)
  endif()
endif()
# LibTorch's own libcudart, below: two runtimes in one process would each have a context of their own. It also lets
# CMake's trial program link, as the wheel's libcudart lacks the name that a linker looks for.
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${compiler_launcher})
endif()

foreach(library c10_cuda torch_cuda)
  add_library(decent::lib_${library} SHARED IMPORTED GLOBAL)
  set_target_properties(decent::lib_${library} PROPERTIES IMPORTED_LOCATION
    "${DECENT_TORCH_ROOT}/lib/lib${library}.so")
endforeach()

# The wheel's headers before the toolkit's: with another nccl.h than the one that LibTorch was built with,
# ProcessGroupNCCL::Options may have another size. USE_C10D_NCCL: without it the header is empty.
get_filename_component(wheel_cuda_root "${wheel_cudart}/../.." ABSOLUTE)
add_library(decent::torch_cuda INTERFACE IMPORTED GLOBAL)
target_include_directories(decent::torch_cuda INTERFACE
  "${nvidia}/nccl/include" "${wheel_cuda_root}/include" ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
target_compile_definitions(decent::torch_cuda INTERFACE USE_C10D_NCCL)
# libtorch_cuda registers its operators when it is loaded: it is needed where no symbol of it is.
target_link_libraries(decent::torch_cuda INTERFACE decent::torch
  "-Wl,--push-state,--no-as-needed" decent::lib_torch_cuda "-Wl,--pop-state" decent::lib_c10_cuda "${wheel_cudart}")

get_filename_component(decent_cuda_runtime_folder "${wheel_cudart}" DIRECTORY)
set(decent_cuda ON)
list(JOIN CMAKE_CUDA_ARCHITECTURES " " architectures)
message(STATUS "CUDA: built with ${CMAKE_CUDA_COMPILER} (${nvcc_release}) for ${architectures}, torch's CUDA is ${wheel_cuda}")
