# What `cmake --install` puts below the prefix besides the program: the library as the CMake package `decent`
# (docs/library.md).
#
# Every room stays a static library of its own, with an exported target, rather than one archive for all: CMake then
# knows what each of them needs and in which order to link; a program that wants only decent::topology or decent::optim
# links no LibTorch; and no generator's way to merge archives is relied on. decent::decent is all of them.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(rooms core topology optim codec comm parallel data)  # checkpoint, model, config and train are the program's

# What users may include, and what those headers include themselves. All others are internal.
set(headers
  core/dtype core/environment core/error core/interval core/membership core/option core/options core/splitmix64 core/text core/trace
  core/version
  topology/analysis topology/topology
  optim/bucket_update optim/loss_scaler optim/improvement optim/matrix optim/plateau optim/schedule optim/update_names optim/whole_gradient
  codec/slices
  comm/agreement comm/communicator comm/device_choice comm/distributed comm/launch comm/lost_workers comm/outcome comm/socket
  comm/world
  comm/control/control comm/control/control_types comm/control/farewell comm/control/gather_box comm/control/links comm/control/liveness
  comm/control/own_progress comm/control/peer_link comm/control/stop_requests comm/control/stop_vote
  parallel/decent_optim_wrapper parallel/decentralized_data_parallel
  parallel/decentralized_parameters parallel/distributed_data_parallel parallel/distributed_parameters
  parallel/parallel_module parallel/trained_parameters parallel/training_options parallel/exchange/by_machine parallel/exchange/exchange parallel/exchange/meetings
  parallel/exchange/methods parallel/exchange/pending_exchanges parallel/exchange/slice_mixing parallel/named_tensors
  data/batch data/digits data/formats data/npz_source data/prefetcher data/safetensors_source data/sampler data/shards data/source
  data/transforms/normalize data/transforms/sample_random data/transforms/transform)

add_library(decent_decent INTERFACE)
add_library(decent::decent ALIAS decent_decent)
set_target_properties(decent_decent PROPERTIES EXPORT_NAME decent)
list(TRANSFORM rooms PREPEND "decent_" OUTPUT_VARIABLE libraries)
target_link_libraries(decent_decent INTERFACE ${libraries})
install(TARGETS ${libraries} decent_decent EXPORT decent INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

foreach(header IN LISTS headers)
  get_filename_component(room "${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/lib/decent/${header}.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/decent/${room}")
endforeach()

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/decent")
install(EXPORT decent NAMESPACE decent:: DESTINATION "${package}" FILE decentTargets.cmake)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/decentConfig.cmake.in" decentConfig.cmake
                              INSTALL_DESTINATION "${package}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(decentConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/decentConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/decentConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/LibTorch.cmake" DESTINATION "${package}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
