# Copies the program, what it needs beyond the system and their licences into the prefix. Runs when a component of
# Bundle.cmake is installed, which sets:
# program, cuda_library (empty where it was not built), DECENT_TORCH_ROOT, with_torch, program_rpath, library_rpath,
# CMAKE_STRIP, PROJECT_SOURCE_DIR

set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
cmake_path(GET DECENT_TORCH_ROOT PARENT_PATH site)
# Packages of which the program has no library but code, of their headers or of an archive.
set(code_packages libarchive-dev libcxxopts-dev libgloo-dev nlohmann-json3-dev)

# What every system has that can run the program at all.
set(system_libraries "^ld-linux-x86-64\\.so" "^lib(c|m|dl|rt|pthread|util|gcc_s|stdc\\+\\+)\\.so")

# Folders of the one who built it must not be left in a file, and must not be searched on other machines.
function(set_rpath file rpath)
  file(READ_ELF "${file}" RPATH old_rpath RUNPATH old_runpath CAPTURE_ERROR problem)
  if(problem)
    message(FATAL_ERROR "${problem}")
  elseif(old_rpath OR old_runpath)
    file(RPATH_SET FILE "${file}" NEW_RPATH "${rpath}")
  endif()
endfunction()

function(copy_library file)
  cmake_path(GET file FILENAME name)
  file(COPY_FILE "${file}" "${prefix}/lib/${name}")  # what a link leads to, under the name that is asked for
  execute_process(COMMAND "${CMAKE_STRIP}" --strip-unneeded "${prefix}/lib/${name}" COMMAND_ERROR_IS_FATAL ANY)
  set_rpath("${prefix}/lib/${name}" "${library_rpath}")
endfunction()

function(copy_debian_licence package)
  if(EXISTS "/usr/share/doc/${package}/copyright")
    file(COPY_FILE "/usr/share/doc/${package}/copyright" "${prefix}/licenses/${package}.txt" ONLY_IF_DIFFERENT)
  else()
    message(WARNING "The licence of ${package} was not found: add it to licenses/ before you pass this on.")
  endif()
endfunction()

# Of the Debian package that a library belongs to.
function(copy_system_licence library)
  file(REAL_PATH "${library}" real)
  cmake_path(GET real FILENAME name)
  execute_process(COMMAND dpkg-query --search "*/${name}" OUTPUT_VARIABLE owner ERROR_QUIET)
  string(REGEX MATCH "^[^:]+" package "${owner}")
  if(package)
    copy_debian_licence("${package}")
  else()
    copy_debian_licence("${name}")
  endif()
endfunction()

# Of the Python package that a library belongs to, by pip's list of its files.
function(copy_python_licences library)
  cmake_path(NORMAL_PATH library)
  cmake_path(RELATIVE_PATH library BASE_DIRECTORY "${site}" OUTPUT_VARIABLE name)
  file(GLOB records "${site}/*.dist-info/RECORD")
  foreach(record IN LISTS records)
    file(STRINGS "${record}" lines)
    list(FILTER lines INCLUDE REGEX "^${name},")
    cmake_path(GET record PARENT_PATH info)
    if(lines AND EXISTS "${info}/licenses")
      cmake_path(GET info STEM LAST_ONLY package)
      file(COPY "${info}/licenses/" DESTINATION "${prefix}/licenses/${package}")
      return()
    endif()
  endforeach()
  message(WARNING "The licence of ${name} was not found: add it to licenses/ before you pass this on.")
endfunction()

# Not of the library for GPUs: LibTorch's CUDA half is in neither, and the rest of what it needs the program needs, too.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${program}" PRE_EXCLUDE_REGEXES ${system_libraries}
     RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR missing)
if(missing)
  message(FATAL_ERROR "The program needs libraries that are not there: ${missing}")
endif()

file(MAKE_DIRECTORY "${prefix}/bin" "${prefix}/lib" "${prefix}/licenses")
# Not stripped: that would take the archive at its end.
file(COPY "${program}" DESTINATION "${prefix}/bin")
cmake_path(GET program FILENAME name)
set_rpath("${prefix}/bin/${name}" "${program_rpath}")
if(cuda_library)
  if(NOT EXISTS "${cuda_library}")
    message(FATAL_ERROR "'${cuda_library}' is not built: build the target gpu, or configure with -DDECENT_CUDA=OFF")
  endif()
  copy_library("${cuda_library}")
endif()
foreach(library IN LISTS libraries)
  cmake_path(IS_PREFIX site "${library}" NORMALIZE of_python)
  if(NOT of_python)
    copy_library("${library}")
    copy_system_licence("${library}")
  elseif(with_torch)
    copy_library("${library}")
    copy_python_licences("${library}")
  endif()
endforeach()
# What the build made part of the program.
file(COPY_FILE "${PROJECT_SOURCE_DIR}/third_party/uplot/LICENSE" "${prefix}/licenses/uplot.txt" ONLY_IF_DIFFERENT)
foreach(package IN LISTS code_packages)
  copy_debian_licence("${package}")
endforeach()
