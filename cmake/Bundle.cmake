# What leaves this machine without the clone: the install components `wheel` (pyproject.toml) and `tree` (tools/package).
# Both are bin/decent-train, lib/ and licenses/; `cmake --install` without a component installs neither.
#
# The tree has LibTorch in lib/. The wheel's folder stands beside torch's in site-packages, where LibTorch is found.

# decent_bundle(<component> <TRUE or FALSE: LibTorch inside> <RPATH of the program> <RPATH of the libraries>)
function(decent_bundle component with_torch program_rpath library_rpath)
  set(cuda_library "")
  if(TARGET decent_cuda)
    set(cuda_library "$<TARGET_FILE:decent_cuda>")
  endif()
  foreach(variable PROJECT_SOURCE_DIR DECENT_TORCH_ROOT CMAKE_STRIP with_torch program_rpath library_rpath)
    install(CODE "set(${variable} [==[${${variable}}]==])" COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
  install(CODE "set(program [==[$<TARGET_FILE:decent-train>]==])\nset(cuda_library [==[${cuda_library}]==])"
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/CopyBundle.cmake" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(cuda_rpath "")
if(decent_cuda)
  cmake_path(RELATIVE_PATH decent_cuda_runtime_folder BASE_DIRECTORY "${DECENT_TORCH_ROOT}/.." OUTPUT_VARIABLE cuda_rpath)
  string(PREPEND cuda_rpath ":$ORIGIN/../../")
endif()
decent_bundle(wheel FALSE "$ORIGIN/../lib:$ORIGIN/../../torch/lib" "$ORIGIN/../../torch/lib${cuda_rpath}")
file(CONFIGURE OUTPUT torch_version.py CONTENT "TORCH_VERSION = '@decent_torch_version@'\n" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/torch_version.py" DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)

decent_bundle(tree TRUE "$ORIGIN/../lib" "$ORIGIN")
install(DIRECTORY configs models docs DESTINATION . COMPONENT tree EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE PATTERN mnist EXCLUDE)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION . COMPONENT tree EXCLUDE_FROM_ALL)
install(PROGRAMS tools/cluster DESTINATION tools COMPONENT tree EXCLUDE_FROM_ALL)
install(FILES tools/cluster_on_machine.bash DESTINATION tools COMPONENT tree EXCLUDE_FROM_ALL)
