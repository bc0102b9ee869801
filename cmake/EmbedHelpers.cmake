# embed_helpers(<target> <folder>): makes all .py files of a folder part of a library, as the function helper_files() of
# decent/onnx/translate/helpers.h. A build after an edit of one makes it again. Here and in tests/fuzz.
#
# This file is also the script that writes the function: cmake -D FILES=.. -D OUTPUT=.. -P EmbedHelpers.cmake

function(embed_helpers target folder)
  file(GLOB files CONFIGURE_DEPENDS "${folder}/*.py")
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/helper_files.cpp")
  add_custom_command(OUTPUT "${output}" COMMAND "${CMAKE_COMMAND}" -D "FILES=${files}" -D "OUTPUT=${output}" -P "${script}"
                     DEPENDS ${files} "${script}" COMMENT "Embedding TorchScript of operators" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(rows "")
  foreach(file IN LISTS FILES)
    cmake_path(GET file FILENAME name)
    file(READ "${file}" text)
    string(FIND "${text}" ")python\"" end)
    if(NOT end EQUAL -1)
      message(FATAL_ERROR "${file} holds )python\", which ends the string that it becomes in C++")
    endif()
    string(APPEND rows "    {\"${name}\", R\"python(${text})python\"},\n")
  endforeach()
  file(WRITE "${OUTPUT}" "// Made by cmake/EmbedHelpers.cmake.

#include \"decent/onnx/translate/helpers.h\"

namespace decent::onnx {

std::span<const HelperFile> helper_files() {
  static constexpr HelperFile kFiles[] = {
${rows}  };
  return kFiles;
}

}  // namespace decent::onnx
")
endif()
