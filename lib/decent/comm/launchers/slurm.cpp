// Slurm: the tasks that srun starts are a step of a job. A batch script, and the shell of salloc,
// have the job's variables but are one process, whatever SLURM_NTASKS says.

#include <algorithm>
#include <string>

#include "decent/comm/control/launcher_watch.h"
#include "decent/comm/launchers/launcher.h"
#include "decent/comm/launchers/slurm_lists.h"
#include "decent/core/error.h"

namespace decent {
namespace {

constexpr int kStepsOfAJob = 16;  // have ports of their own; then the next job's begin

bool started_by_slurm(const Variables& variables) { return variables("SLURM_STEP_ID").has_value(); }

// "4(x2),3" of SLURM_STEP_TASKS_PER_NODE, and which of these nodes is this one.
int tasks_here(const LauncherVariables& variables, const Launch& launch) {
  const std::string name = "SLURM_STEP_TASKS_PER_NODE";
  const int node = variables.required("SLURM_NODEID", 0, kMaxWorkers);
  const auto tasks = slurm_tasks_on_node(variables.required_text(name), node);
  if (!tasks || *tasks > launch.world_size) {
    variables.refuse(name, "the numbers of tasks by node, as in 4(x2),3, for node " +
                               std::to_string(node) + " of a step of " +
                               std::to_string(launch.world_size));
  }
  return *tasks;
}

// A job that was submitted from inside another job's step inherits the variables of that step. But
// Slurm tells every process anew which tasks run on its node.
void check_own_step(const LauncherVariables& variables, const Launch& launch) {
  const std::string tasks = variables.text("SLURM_GTIDS");
  if (tasks.empty()) return;
  const auto here = 1 + std::count(tasks.begin(), tasks.end(), ',');
  if (here == launch.local_world_size) return;
  throw UserError("Slurm's variables are of two steps: SLURM_GTIDS is '" + tasks +
                  "', but SLURM_STEP_TASKS_PER_NODE says that " +
                  std::to_string(launch.local_world_size) +
                  " tasks run on this node.\nA job that is submitted from inside another job's "
                  "step inherits its variables: submit it with sbatch --export=NONE, or start "
                  "the workers with srun.");
}

// Under srun --pty the task is a shell and this process is a job of it, so the two have different
// process groups. A script that is the task runs its programs in its own process group.
void check_no_shell_of_a_terminal(const LauncherVariables& variables, const Launch& launch) {
  const std::string task = variables.text("SLURM_TASK_PID");
  if (!variables.has("SLURM_PTY_PORT") || task.empty()) return;
  const auto group = process_group(variables.proc() / task);
  if (!group || group == process_group(variables.proc() / "self")) return;
  const std::string tasks = std::to_string(launch.world_size);
  throw UserError("SLURM_STEP_NUM_TASKS is " + tasks + " and SLURM_PROCID is " +
                  std::to_string(launch.rank) + ", so this is worker " +
                  std::to_string(launch.rank) + " of " + tasks +
                  "; but it was started by hand, in the shell of srun --pty, and nobody starts the "
                  "others.\nStart all of them with `srun --overlap --ntasks=" +
                  tasks +
                  " decent-train ..`, or one worker with `env -u SLURM_STEP_ID decent-train ..` "
                  "(several on this node: with --workers N at its end).");
}

// The first node of the step, where task 0 is unless a list of hosts says otherwise.
std::string first_node(const LauncherVariables& variables, const Launch& launch) {
  if (variables.has("MASTER_ADDR") || launch.one_machine()) return "";
  const std::string name = "SLURM_STEP_NODELIST";
  const std::string node = first_slurm_host(variables.required_text(name));
  if (node.empty()) variables.refuse(name, "a list of hosts, as in node[01-03,07],gpu1");
  if (launch.rank == 0 && variables.text("SLURM_NODEID") != "0") {
    throw UserError("Slurm started task 0 on node " + variables.text("SLURM_NODEID") +
                    " of the step, while the others look for it on the first one, '" + node +
                    "': give MASTER_ADDR, the host of task 0");
  }
  return node;
}

void read_slurm(const LauncherVariables& variables, Launch& launch) {
  launch.launcher_mark = "SLURM_TASK_PID";
  if (variables.world_size("SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", launch) == 1) return;
  launch.rank = variables.required("SLURM_PROCID", 0, launch.world_size - 1);
  check_no_shell_of_a_terminal(variables, launch);
  launch.local_world_size = tasks_here(variables, launch);
  check_own_step(variables, launch);
  launch.local_rank = variables.required("SLURM_LOCALID", 0, launch.local_world_size - 1);
  const std::int64_t job = variables.id("SLURM_JOB_ID");
  const std::int64_t step = variables.id("SLURM_STEP_ID");
  launch.store_prefix = "/slurm/" + std::to_string(job) + "." + std::to_string(step);
  choose_store(variables,
               {.address = first_node(variables, launch),
                .id = job * kStepsOfAJob + step,
                .example = "export it before srun"},
               launch);
}

}  // namespace

const Launcher kSlurm{"Slurm", started_by_slurm, read_slurm};

}  // namespace decent
