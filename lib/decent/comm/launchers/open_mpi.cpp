// Open MPI's mpirun.

#include <string>

#include "decent/comm/launchers/launcher.h"

namespace decent {
namespace {

bool started_by_open_mpi(const Variables& variables) {
  return variables("OMPI_COMM_WORLD_SIZE") || variables("OMPI_COMM_WORLD_RANK");
}

// FNV-1a of the job's name, which is a number or text, depending on the version.
std::optional<std::int64_t> open_mpi_id(const std::string& name) {
  if (name.empty()) return std::nullopt;
  std::uint32_t hash = 2166136261;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619;
  return hash;
}

void read_open_mpi(const LauncherVariables& variables, Launch& launch) {
  launch.launcher_mark = "PMIX_NAMESPACE";
  variables.world_size("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE",
                       launch);
  launch.rank = variables.required("OMPI_COMM_WORLD_RANK", 0, launch.world_size - 1);
  if (launch.world_size == 1) return;
  launch.local_world_size = variables.required("OMPI_COMM_WORLD_LOCAL_SIZE", 1, launch.world_size);
  launch.local_rank =
      variables.required("OMPI_COMM_WORLD_LOCAL_RANK", 0, launch.local_world_size - 1);
  const std::string job = variables.text("PMIX_NAMESPACE");
  launch.store_prefix = "/mpirun/" + job;
  choose_store(variables,
               {.address = "",
                .id = open_mpi_id(job),
                .example = "mpirun -x MASTER_ADDR=.. -x MASTER_PORT=.."},
               launch);
}

}  // namespace

const Launcher kOpenMpi{"Open MPI", started_by_open_mpi, read_open_mpi};

}  // namespace decent
