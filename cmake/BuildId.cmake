# Writes OUTPUT, a C++ file with the version and the build id: the commit, plus a hash of what is built where it differs
# from that commit (or where there is no git).

cmake_policy(VERSION 3.25)

set(sources lib app cmake CMakeLists.txt)

function(git output)
  execute_process(COMMAND git -C "${SOURCE_DIR}" ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${output} "${text}" PARENT_SCOPE)
  set(${output}_failed "${failed}" PARENT_SCOPE)
endfunction()

function(hash_sources output)
  set(hashes "")
  foreach(source IN LISTS sources)
    file(GLOB_RECURSE files LIST_DIRECTORIES false "${SOURCE_DIR}/${source}" "${SOURCE_DIR}/${source}/*")
    list(SORT files)
    foreach(file IN LISTS files)
      file(SHA256 "${file}" hash)
      file(RELATIVE_PATH name "${SOURCE_DIR}" "${file}")
      string(APPEND hashes "${name} ${hash}\n")
    endforeach()
  endforeach()
  string(SHA256 hash "${hashes}")
  string(SUBSTRING "${hash}" 0 12 hash)
  set(${output} "${hash}" PARENT_SCOPE)
endfunction()

git(commit rev-parse --short=12 HEAD)
git(changes status --porcelain -- ${sources})
if(commit_failed)
  hash_sources(hash)
  set(id "sources-${hash}")
elseif(changes)
  hash_sources(hash)
  set(id "${commit}+${hash}")
else()
  set(id "${commit}")
endif()

file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
#include "decent/core/version.h"

namespace decent {

std::string_view version() { return "@VERSION@"; }
std::string_view build_id() { return "@id@"; }

}  // namespace decent
]] @ONLY)
