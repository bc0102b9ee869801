#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "../support/temporary_folder.h"
#include "decent/comm/launch.h"
#include "decent/core/error.h"

namespace decent::launcher_variables {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

Launch read(const Environment& environment, const std::filesystem::path& proc = "/nowhere") {
  return read_launch(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto entry = environment.find(name);
        return entry == environment.end() ? std::nullopt : std::optional(entry->second);
      },
      proc);
}

std::string refusal(const Environment& environment) {
  try {
    read(environment);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

Environment with(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

// Task 4 of `srun -N 2 -n 5`, as Slurm 22.05 sets it: the last one of 4 on the first node, and one
// on the second.
Environment slurm() {
  return {{"SLURM_JOB_ID", "3"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", "4"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NODEID", "1"},
          {"SLURM_GTIDS", "4"},
          {"SLURM_NTASKS", "5"},
          {"SLURM_STEP_NUM_TASKS", "5"},
          {"SLURM_STEP_NODELIST", "node[01-02]"},
          {"SLURM_STEP_TASKS_PER_NODE", "4,1"}};
}

Environment slurm_on_one_node() {
  return with(slurm(), {{"SLURM_STEP_NODELIST", "node02"},
                        {"SLURM_STEP_TASKS_PER_NODE", "5"},
                        {"SLURM_NODEID", "0"},
                        {"SLURM_GTIDS", "0,1,2,3,4"},
                        {"SLURM_LOCALID", "4"}});
}

// Rank 1 of `mpirun -n 3`, as Open MPI 4.1 sets it.
Environment open_mpi() {
  return {{"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_SIZE", "3"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
          {"PMIX_NAMESPACE", "1779171329"}};
}

// Rank 2 of `mpiexec.hydra -n 3`, as MPICH 4.0 sets it.
Environment hydra() {
  return {{"PMI_RANK", "2"},
          {"PMI_SIZE", "3"},
          {"PMI_FD", "14"},
          {"MPI_LOCALNRANKS", "3"},
          {"MPI_LOCALRANKID", "2"}};
}

Environment pmi() {
  return {{"PMI_RANK", "2"},
          {"PMI_SIZE", "3"},
          {"PMI_LOCAL_RANK", "2"},
          {"PMI_LOCAL_SIZE", "3"},
          {"MASTER_PORT", "29500"}};
}

Environment torch() {
  return {{"RANK", "0"},
          {"WORLD_SIZE", "2"},
          {"LOCAL_RANK", "0"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "node-0"},
          {"MASTER_PORT", "29500"}};
}

const Environment kGiven = {{"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "29501"}};

// Kubeflow sets no more than the other four.
TEST(TorchVariables, NeedNotSayWhoIsOnThisMachine) {
  const Launch launch = read(without(without(torch(), "LOCAL_RANK"), "LOCAL_WORLD_SIZE"));
  EXPECT_FALSE(launch.knows_machine);
  EXPECT_FALSE(launch.one_machine());
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_EQ(launch.local_world_size, 1);
  EXPECT_TRUE(read(torch()).knows_machine);
  EXPECT_THAT(refusal(without(torch(), "LOCAL_RANK")), HasSubstr("LOCAL_RANK is missing"));
  EXPECT_THAT(refusal(without(torch(), "LOCAL_WORLD_SIZE")),
              HasSubstr("LOCAL_WORLD_SIZE is missing"));
  EXPECT_FALSE(read(with(without(without(pmi(), "PMI_LOCAL_RANK"), "PMI_LOCAL_SIZE"), kGiven))
                   .knows_machine);
}

TEST(Slurm, TaskOfAStep) {
  const Launch launch = read(slurm());
  EXPECT_EQ(launch.launcher, "Slurm");
  EXPECT_EQ(launch.rank, 4);
  EXPECT_EQ(launch.world_size, 5);
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_EQ(launch.local_world_size, 1);
  EXPECT_EQ(launch.master_addr, "node01");
  EXPECT_EQ(launch.master_port, 20048);  // 16 for each job
  EXPECT_EQ(launch.store_prefix, "/slurm/3.0");
  EXPECT_FALSE(launch.agent_store);
  EXPECT_FALSE(launch.torchrun);
  EXPECT_EQ(read(with(slurm(), {{"SLURM_STEP_ID", "2"}})).master_port, 20050);
}

TEST(Slurm, PortsStayBelowThoseOfConnections) {
  for (const std::string job : {"0", "797", "798", "123456789", "4294967295"}) {
    for (const std::string step : {"0", "15", "4294967290"}) {
      const int port =
          read(with(slurm(), {{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", step}})).master_port;
      EXPECT_GE(port, 20000);
      EXPECT_LT(port, 32768);
    }
  }
}

TEST(Slurm, AStepOnOneNodeNeedsNoNetwork) {
  const Launch launch = read(slurm_on_one_node());
  EXPECT_EQ(launch.master_addr, "127.0.0.1");
  EXPECT_EQ(launch.local_rank, 4);
  EXPECT_TRUE(launch.one_machine());
}

TEST(Slurm, WhatTheUserGivesCounts) {
  const Launch launch = read(with(slurm(), kGiven));
  EXPECT_EQ(launch.master_addr, "10.0.0.7");
  EXPECT_EQ(launch.master_port, 29501);
}

// Each is one process, whatever the job asks for.
TEST(Slurm, WhatIsNoStepOfSeveralIsASingleWorker) {
  const Environment batch_script = {{"SLURM_JOB_ID", "5"}, {"SLURM_NTASKS", "4"},
                                    {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"},
                                    {"SLURM_NODEID", "0"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}};
  EXPECT_EQ(read(batch_script).world_size, 1);
  EXPECT_EQ(read(batch_script).launcher, "");
  EXPECT_EQ(read({{"SLURM_JOB_ID", "5"}, {"SLURM_NTASKS", "4"}}).world_size, 1);  // salloc
  const Environment one_task = {{"SLURM_STEP_ID", "4294967290"},
                                {"SLURM_STEP_NUM_TASKS", "1"},
                                {"SLURM_NTASKS", "4"},
                                {"SLURM_PROCID", "0"}};
  EXPECT_EQ(read(one_task).world_size, 1);
  EXPECT_TRUE(read(one_task).one_machine());
}

TEST(Slurm, HostListsAndTasksByNode) {
  const auto first_of = [](const std::string& list) {
    return read(with(slurm(), {{"SLURM_STEP_NODELIST", list}})).master_addr;
  };
  EXPECT_EQ(first_of("node[01-03,07],gpu1"), "node01");
  EXPECT_EQ(first_of("node[07,09-12]"), "node07");
  EXPECT_EQ(first_of("gpu1,node[01-03]"), "gpu1");
  EXPECT_EQ(first_of("rack[1-2]node[08-10]-ib.example.org"), "rack1node08-ib.example.org");
  EXPECT_EQ(first_of("login"), "login");
  const auto tasks_of = [](const std::string& tasks, const std::string& node) {
    return read(with(without(slurm(), "SLURM_GTIDS"), {{"SLURM_STEP_NUM_TASKS", "20"},
                                                       {"SLURM_NODEID", node},
                                                       {"SLURM_STEP_TASKS_PER_NODE", tasks}}))
        .local_world_size;
  };
  EXPECT_EQ(tasks_of("4(x2),3", "0"), 4);
  EXPECT_EQ(tasks_of("4(x2),3", "1"), 4);
  EXPECT_EQ(tasks_of("4(x2),3", "2"), 3);
  EXPECT_EQ(tasks_of("2,1(x10),8", "11"), 8);
}

TEST(Slurm, NamesAVariableThatMakesNoSense) {
  for (const auto& [name, value] : {std::pair("SLURM_PROCID", "5"),
                                    {"SLURM_PROCID", "-1"},
                                    {"SLURM_PROCID", ""},
                                    {"SLURM_LOCALID", "1"},
                                    {"SLURM_NODEID", "x"},
                                    {"SLURM_STEP_NUM_TASKS", "0"},
                                    {"SLURM_JOB_ID", "-3"},
                                    {"SLURM_JOB_ID", "99999999999"},
                                    {"SLURM_STEP_ID", "first"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "4"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "4(x2"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "4(x0),1"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "4 1"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "4,6"},
                                    {"SLURM_STEP_NODELIST", "node[01-02"},
                                    {"SLURM_STEP_NODELIST", "node[]"},
                                    {"SLURM_STEP_NODELIST", "node]"},
                                    {"SLURM_STEP_NODELIST", ",node01"}}) {
    EXPECT_THAT(refusal(with(slurm(), {{name, value}})),
                AllOf(HasSubstr("Slurm's variable " + std::string(name)),
                      HasSubstr("'" + std::string(value) + "': expected")))
        << name << '=' << value;
  }
}

TEST(Slurm, NamesAMissingVariable) {
  for (const auto& entry : slurm()) {
    if (entry.first == "SLURM_STEP_ID" || entry.first == "SLURM_GTIDS" ||
        entry.first == "SLURM_NTASKS") {
      continue;  // no step, and what need not be there
    }
    EXPECT_THAT(refusal(without(slurm(), entry.first)),
                AllOf(HasSubstr("Slurm set only some of its variables"),
                      HasSubstr(entry.first + " is missing")));
  }
  EXPECT_EQ(refusal(without(slurm(), "SLURM_GTIDS")), "accepted");
}

// A batch script of 2 tasks that a task of another job's step submitted.
TEST(Slurm, FindsTheVariablesOfAnotherStep) {
  const Environment inherited = with(
      slurm_on_one_node(), {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_GTIDS", "0"}});
  EXPECT_THAT(refusal(inherited), AllOf(HasSubstr("SLURM_GTIDS is '0'"), HasSubstr("5 tasks"),
                                        HasSubstr("--export=NONE")));
}

// `srun --distribution=arbitrary` with a list of hosts that does not begin with the first one.
TEST(Slurm, Task0OnAnotherNodeNeedsAnAddress) {
  const Environment task0 =
      with(slurm(), {{"SLURM_PROCID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "4,1"}});
  EXPECT_THAT(refusal(task0), AllOf(HasSubstr("task 0 on node 1"), HasSubstr("'node01'"),
                                    HasSubstr("MASTER_ADDR")));
  EXPECT_EQ(refusal(with(task0, kGiven)), "accepted");
}

TEST(OpenMpi, WorkerOfOneMachine) {
  const Launch launch = read(open_mpi());
  EXPECT_EQ(launch.launcher, "Open MPI");
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.world_size, 3);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_world_size, 3);
  EXPECT_EQ(launch.master_addr, "127.0.0.1");
  EXPECT_GE(launch.master_port, 20000);
  EXPECT_LT(launch.master_port, 32768);
  EXPECT_EQ(launch.store_prefix, "/mpirun/1779171329");
  EXPECT_EQ(read(with(open_mpi(), {{"OMPI_COMM_WORLD_RANK", "0"}})).master_port,
            launch.master_port);
  const Environment next = with(open_mpi(), {{"PMIX_NAMESPACE", "prterun-vm-77@1"}});
  EXPECT_NE(read(next).master_port, launch.master_port);
  EXPECT_EQ(read(with(open_mpi(), kGiven)).master_port, 29501);
}

TEST(OpenMpi, SeveralMachinesNeedAnAddress) {
  const Environment of_two = with(open_mpi(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_THAT(refusal(of_two), AllOf(HasSubstr("Open MPI"), HasSubstr("MASTER_ADDR"),
                                     HasSubstr("mpirun -x MASTER_ADDR=..")));
  EXPECT_EQ(read(with(of_two, kGiven)).master_addr, "10.0.0.7");
  EXPECT_THAT(refusal(with(without(of_two, "PMIX_NAMESPACE"), {{"MASTER_ADDR", "a"}})),
              HasSubstr("give MASTER_PORT"));
}

TEST(OpenMpi, NamesWhatIsWrong) {
  for (const auto& [name, value] : {std::pair("OMPI_COMM_WORLD_RANK", "3"),
                                    {"OMPI_COMM_WORLD_SIZE", "none"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}) {
    EXPECT_THAT(refusal(with(open_mpi(), {{name, value}})),
                HasSubstr("Open MPI's variable " + std::string(name) + " is '" + value + "'"));
    EXPECT_THAT(refusal(without(open_mpi(), name)), HasSubstr(std::string(name) + " is missing"));
  }
  EXPECT_THAT(refusal(with(open_mpi(), {{"MASTER_PORT", "0"}})), HasSubstr("MASTER_PORT is '0'"));
}

// A folder that looks like /proc: a worker, a script that started it, and process 20.
class UnderHydra {
 public:
  UnderHydra() {
    add("self", 30, std::string("PMI_RANK=2\0", 11));
    add("30", 20, std::string("PMI_RANK=2\0", 11));
    add("20", 1, "HOME=/");
  }
  const std::filesystem::path& proc() const { return folder_.path(); }

 private:
  void add(const std::string& process, int parent, const std::string& variables) {
    std::filesystem::create_directories(folder_.path() / process);
    std::ofstream(folder_.path() / process / "stat") << "7 (name) S " << parent << " 7 7 0";
    std::ofstream(folder_.path() / process / "environ") << variables;
  }

  testing::TemporaryFolder folder_;
};

TEST(Hydra, WorkerOfOneMachine) {
  const Launch launch = read(hydra(), UnderHydra().proc());
  EXPECT_EQ(launch.launcher, "Hydra");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.world_size, 3);
  EXPECT_EQ(launch.local_rank, 2);
  EXPECT_EQ(launch.local_world_size, 3);
  EXPECT_EQ(launch.master_addr, "127.0.0.1");
  EXPECT_EQ(launch.master_port, 20020);  // Hydra's process on this machine
  EXPECT_EQ(launch.store_prefix, "/hydra/20");
  EXPECT_EQ(read(with(hydra(), kGiven), UnderHydra().proc()).master_port, 29501);
  EXPECT_THAT(refusal(hydra()), HasSubstr("give MASTER_PORT"));  // who started it is unknown
}

TEST(Hydra, SeveralMachinesNeedAnAddressAndAPort) {
  const Environment of_two = with(hydra(), {{"MPI_LOCALNRANKS", "1"}, {"MPI_LOCALRANKID", "0"}});
  EXPECT_THAT(refusal(of_two), AllOf(HasSubstr("Hydra"), HasSubstr("MASTER_ADDR"),
                                     HasSubstr("mpiexec -genv MASTER_ADDR ..")));
  EXPECT_THAT(refusal(with(of_two, {{"MASTER_ADDR", "a"}})), HasSubstr("MASTER_PORT"));
  EXPECT_EQ(read(with(of_two, kGiven)).master_addr, "10.0.0.7");
}

TEST(Hydra, NamesWhatIsWrong) {
  for (const auto& [name, value] : {std::pair("PMI_RANK", "3"),
                                    {"PMI_SIZE", "-3"},
                                    {"MPI_LOCALRANKID", "3"},
                                    {"MPI_LOCALNRANKS", "9"}}) {
    EXPECT_THAT(refusal(with(hydra(), {{name, value}})),
                HasSubstr("Hydra's variable " + std::string(name) + " is '" + value + "'"));
  }
}

TEST(Pmi, NeedsToKnowWhoIsOnThisMachine) {
  const Launch launch = read(pmi());
  EXPECT_EQ(launch.launcher, "PMI");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.local_world_size, 3);
  EXPECT_EQ(launch.master_addr, "127.0.0.1");
  EXPECT_EQ(launch.master_port, 29500);
  EXPECT_THAT(refusal(without(pmi(), "PMI_LOCAL_RANK")), HasSubstr("PMI_LOCAL_RANK is missing"));
  EXPECT_THAT(refusal(without(pmi(), "PMI_RANK")), HasSubstr("PMI_RANK is missing"));
  EXPECT_THAT(refusal(without(pmi(), "MASTER_PORT")), HasSubstr("MASTER_PORT"));
  EXPECT_EQ(read({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).world_size, 1);
}

// The inner one counts: mpirun starts its daemons as a step of Slurm, one task on each node.
TEST(Launchers, AreAskedInThisOrder) {
  Environment all = pmi();
  all.erase("MASTER_PORT");
  const auto next = [&](const Environment& more) { return read(all = with(all, more)).launcher; };
  EXPECT_EQ(read(pmi()).launcher, "PMI");
  EXPECT_EQ(next(slurm()), "Slurm");
  EXPECT_EQ(next(with(hydra(), {{"MASTER_PORT", "29500"}})), "Hydra");
  EXPECT_EQ(next(open_mpi()), "Open MPI");
  EXPECT_EQ(next(torch()), "the launcher");
  EXPECT_EQ(next({{"TORCHELASTIC_RUN_ID", "x"}}), "torchrun");
}

TEST(Launchers, OneWorkerNeedsNoStore) {
  for (const Environment& environment :
       {Environment{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
        Environment{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"MPI_LOCALNRANKS", "1"}},
        Environment{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}}) {
    EXPECT_EQ(read(environment).world_size, 1);
    EXPECT_EQ(read(environment).master_port, 0);
  }
}

}  // namespace
}  // namespace decent::launcher_variables
