#include "net/cluster_resolvers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace troupe {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Environment In(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(JobSizes, AreReadInOrder) {
  EXPECT_EQ(*ParseJobSizes("ps=1,worker=4"), (JobSizes{{"ps", 1}, {"worker", 4}}));
  EXPECT_EQ(*ParseJobSizes("z=2,a=3"), (JobSizes{{"z", 2}, {"a", 3}}));
}

TEST(JobSizes, OthersAreRefused) {
  for (const char* text : {"", "ps", "ps=", "=1", "ps=0", "ps=-1", "ps=1,", "ps=1,ps=2", "ps=1=2",
                           "ps=100001", "a=60000,b=60000", "ps=99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseJobSizes(text).status())) << text;
  }
}

// What srun gives its processes: nodes as scontrol's "hostlist", counts as "N(xTIMES)".
TEST(Slurm, ProcessesAreTasksInOrder) {
  Variables variables = {{"SLURM_JOB_NODELIST", "not,looked,at"},
                         {"SLURM_STEP_NODELIST", "n[08-10],gpu[1]-ib"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1(x2)"},
                         {"SLURM_PROCID", "4"}};
  const auto config = ResolveSlurm({{"ps", 2}, {"worker", 4}}, 7000, In(variables));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.ToJson(),
            R"({"ps":["n08:7000","n08:7001"],)"
            R"("worker":["n09:7000","n09:7001","n10:7000","gpu1-ib:7000"]})");
  EXPECT_EQ(config->task.ToString(), "/job:worker/replica:0/task:2");
}

TEST(Slurm, TheJobsVariablesServeWithoutAStep) {
  Variables variables = {
      {"SLURM_JOB_NODELIST", "a,b"}, {"SLURM_TASKS_PER_NODE", "1(x2)"}, {"SLURM_PROCID", "0"}};
  const auto config = ResolveSlurm({{"worker", 2}}, 80, In(variables));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.ToJson(), R"({"worker":["a:80","b:80"]})");
}

TEST(Slurm, ACyclicDistributionGoesRound) {
  Variables variables = {{"SLURM_STEP_NODELIST", "a,b"},
                         {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
                         {"SLURM_DISTRIBUTION", "cyclic"},
                         {"SLURM_PROCID", "1"}};
  const auto config = ResolveSlurm({{"worker", 5}}, 80, In(variables));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.ToJson(), R"({"worker":["a:80","b:80","a:81","b:81","a:82"]})");
  EXPECT_EQ(config->task.task, 1);
}

TEST(Slurm, WhatCannotBeReadIsRefused) {
  const Variables good = {{"SLURM_STEP_NODELIST", "a,b"},
                          {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                          {"SLURM_PROCID", "0"}};
  ASSERT_TRUE(ResolveSlurm({{"worker", 2}}, 80, In(good)).ok());
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"SLURM_STEP_NODELIST", "a[1"},
           {"SLURM_STEP_NODELIST", "a[]"},
           {"SLURM_STEP_NODELIST", "a[2-1]"},
           {"SLURM_STEP_NODELIST", "a[1-999999999]"},
           {"SLURM_STEP_NODELIST", "a[1-90000][1-90000]"},
           {"SLURM_STEP_NODELIST", "a]"},
           {"SLURM_STEP_NODELIST", "a,,b"},
           {"SLURM_STEP_NODELIST", "a"},
           {"SLURM_STEP_NODELIST", "a,a b"},
           {"SLURM_STEP_NODELIST", std::string(2 << 20, 'a')},
           {"SLURM_STEP_TASKS_PER_NODE", "1"},
           {"SLURM_STEP_TASKS_PER_NODE", "1(x2"},
           {"SLURM_STEP_TASKS_PER_NODE", "1(x999999999)"},
           {"SLURM_STEP_TASKS_PER_NODE", "1,x"},
           {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
           {"SLURM_PROCID", "2"},
           {"SLURM_PROCID", "-1"},
           {"SLURM_PROCID", "x"},
           {"SLURM_DISTRIBUTION", "plane=2"}}) {
    Variables bad = good;
    bad[name] = value;
    EXPECT_TRUE(absl::IsInvalidArgument(ResolveSlurm({{"worker", 2}}, 80, In(bad)).status()))
        << name << " " << value.substr(0, 50);
  }
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURM_PROCID"}) {
    Variables bad = good;
    bad.erase(name);
    const absl::Status status = ResolveSlurm({{"worker", 2}}, 80, In(bad)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST(Kubernetes, ThePodsNameIsTheTasks) {
  Variables variables = {{"HOSTNAME", "my-training-worker-1"}};
  auto config = ResolveKubernetes({{"ps", 1}, {"worker", 2}}, 7000, In(variables));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.ToJson(), R"({"ps":["my-training-ps-0.my-training-ps:7000"],)"
                                      R"("worker":["my-training-worker-0.my-training-worker:7000",)"
                                      R"("my-training-worker-1.my-training-worker:7000"]})");
  EXPECT_EQ(config->task.ToString(), "/job:worker/replica:0/task:1");

  variables = {{"HOSTNAME", "ps-0"}, {"TROUPE_DOMAIN", "team.svc.cluster.local"}};
  config = ResolveKubernetes({{"ps", 1}}, 80, In(variables));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.ToJson(), R"({"ps":["ps-0.ps.team.svc.cluster.local:80"]})");
}

TEST(Kubernetes, OtherNamesAreRefused) {
  for (const char* name : {"worker", "worker-", "worker-2", "worker-x", "-1", "master-0",
                           "trainingworker-0", "worker-0-", "worker-99999999999"}) {
    const Variables variables = {{"HOSTNAME", name}};
    EXPECT_TRUE(absl::IsInvalidArgument(
        ResolveKubernetes({{"ps", 1}, {"worker", 2}}, 80, In(variables)).status()))
        << name;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(ResolveKubernetes({{"worker", 2}}, 80, In({})).status()));
}

}  // namespace
}  // namespace troupe
