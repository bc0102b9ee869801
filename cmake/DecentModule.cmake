# decent_module(<name> [TOGETHER] SOURCES .. DEPENDS ..): the static library decent_<name> (alias decent::<name>).
# decent_unit_test(<module> [TOGETHER] SOURCES .. DEPENDS ..): one GoogleTest program and one ctest entry, unit.<module>.
# TOGETHER: see DECENT_UNITY below.

add_library(decent_warnings INTERFACE)
set(warnings -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND warnings -Wno-restrict)  # false alarms on "text" + string (GCC bug 105651)
endif()
if(DECENT_SANITIZE)
  list(APPEND warnings -fsanitize=${DECENT_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(decent_warnings INTERFACE -fsanitize=${DECENT_SANITIZE})
endif()
target_compile_options(decent_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")  # nvcc has its own words

# Headers of LibTorch and GoogleTest cost more than most files' own code. With this option several files are compiled as
# one, so that headers are read once for all of them: right for a whole build, while a change of one file compiles its
# neighbours, too. Without it (the preset dev) every file must include what it uses.
option(DECENT_UNITY "Compile the files of a target together where their headers cost most" OFF)
set(decent_unity_files 12)  # at a time; with more a core runs out of work at the end of a room

# decent_together(<target>): its headers cost most.
function(decent_together target)
  if(DECENT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${decent_unity_files})
  endif()
endfunction()

# decent_apart(<target> <sources> ..): these are together among themselves, because programs link them without the others.
function(decent_apart target)
  if(NOT DECENT_UNITY)
    return()
  endif()
  get_target_property(all ${target} SOURCES)
  set(number 0)
  foreach(source IN LISTS all)
    if(source IN_LIST ARGN)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP apart)
    elseif(source MATCHES "\\.cpp$")
      math(EXPR group "${number} / ${decent_unity_files}")
      math(EXPR number "${number} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

function(decent_module name)
  cmake_parse_arguments(ARG "TOGETHER" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(decent_${name} STATIC ${ARG_SOURCES})
  if(ARG_TOGETHER)
    decent_together(decent_${name})
  endif()
  add_library(decent::${name} ALIAS decent_${name})
  set_target_properties(decent_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(decent_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib>")
  target_compile_features(decent_${name} PUBLIC cxx_std_20)
  target_link_libraries(decent_${name} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:decent_warnings>)
endfunction()

# SHARED_MEMORY <filter>: these tests run again with workers that share memory (tests/unit/support/workers.h).
function(decent_unit_test module)
  cmake_parse_arguments(ARG "TOGETHER" "SHARED_MEMORY" "SOURCES;DEPENDS" ${ARGN})
  add_executable(unit_${module} ${ARG_SOURCES})
  if(ARG_TOGETHER)
    decent_together(unit_${module})
  endif()
  target_link_libraries(unit_${module} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main
                                               decent_warnings)
  add_test(NAME unit.${module} COMMAND unit_${module} --gtest_brief=1)
  set(tests unit.${module})
  if(ARG_SHARED_MEMORY)
    add_test(NAME unit.${module}.shared_memory COMMAND "${CMAKE_COMMAND}" -E env DECENT_TEST_SHARED_MEMORY=1
             "$<TARGET_FILE:unit_${module}>" --gtest_brief=1 "--gtest_filter=${ARG_SHARED_MEMORY}")
    list(APPEND tests unit.${module}.shared_memory)
  endif()
  # c10d's flight recorder keeps a map of process groups without a lock (torch 2.11): with workers as threads of one
  # process it is corrupted now and then, and a look-up never ends.
  set_tests_properties(${tests} PROPERTIES LABELS unit TIMEOUT 300 ENVIRONMENT
    "OMP_NUM_THREADS=1;TORCH_FR_BUFFER_SIZE=0;DECENT_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
endfunction()
