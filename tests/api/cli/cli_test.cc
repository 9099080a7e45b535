// Runs the program `troupe` as a user would.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "api/program/child_process.h"

namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Result {
  int status;
  std::string out, err;
};

std::string ReadFile(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class CliTest : public testing::Test {
 protected:
  CliTest() : folder_(testing::TempDir() + "troupe_cli_" + std::to_string(getpid()) + "_") {
    std::ofstream(graph()) << R"(
      node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
      node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "z" op: "Mul" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
             attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 1 } } } }
      node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_INT64 } }
             attr { key: "shape" value { shape {} } } }
      node { name: "init" op: "Assign" input: "v" input: "one" attr { key: "T" value { type: DT_INT64 } } }
      node { name: "count" op: "AssignAdd" input: "v" input: "one" attr { key: "T" value { type: DT_INT64 } } }
    )";
  }
  std::string graph() const { return folder_ + "graph.pbtxt"; }
  Result Run(const std::string& arguments) const {
    const std::string out = folder_ + "out", err = folder_ + "err";
    const std::string command =
        TROUPE_PROGRAM " " + arguments + " >" + out + " 2>" + err + " </dev/null";
    const auto ran = troupe::RunProgram({.arguments = {"/bin/sh", "-c", command}});
    return {ran.ok() ? ran->status.code.value_or(-1) : -1, ReadFile(out), ReadFile(err)};
  }
  std::string folder_;
};

TEST_F(CliTest, RunPrintsWhatIsFetched) {
  Result r = Run("run " + graph() + " --feed 'x=[[1,2],[3,4.5]]' --fetch z --fetch y:0");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out,
            "z float [2,2] [[-1.0,-4.0],[-9.0,-20.25]]\n"
            "y:0 float [2,2] [[-1.0,-2.0],[-3.0,-4.5]]\n");
}

TEST_F(CliTest, StepsRunAfterInitialisers) {
  Result r = Run("run " + graph() + " --init init --fetch count --steps 5");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "count int64 [] 6\n");
  r = Run("run " + graph() + " --fetch count");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("FAILED_PRECONDITION: "));
  EXPECT_THAT(r.err, HasSubstr("v"));
}

TEST_F(CliTest, ArraysGoThroughFiles) {
  const std::string file = folder_ + "y.npy";
  ASSERT_EQ(Run("run " + graph() + " --feed x=[1,2,3] --fetch y=" + file).status, 0);
  Result r = Run("run " + graph() + " --feed x=" + file + " --fetch y");
  EXPECT_EQ(r.out, "y float [3] [1.0,2.0,3.0]\n") << r.err;
}

TEST_F(CliTest, ErrorsAreOneLineWithTheCode) {
  const std::pair<std::string, std::string> cases[] = {
      {"run " + graph() + " --feed x=abc --fetch y", "INVALID_ARGUMENT: "},
      {"run " + graph() + " --feed x=[[1],[2,3]] --fetch y", "INVALID_ARGUMENT: "},
      {"run " + graph() + " --fetch y", "INVALID_ARGUMENT: "},
      {"run " + graph() + " --feed x=1 --fetch nothing", "NOT_FOUND: "},
      {"run " + graph() + " --feed x=no_such_file.npy --fetch y", "NOT_FOUND: "},
      {"run /no/such/graph --fetch y", "NOT_FOUND: "},
      {"graph /no/such/graph", "NOT_FOUND: "},
  };
  for (const auto& [arguments, code] : cases) {
    Result r = Run(arguments);
    EXPECT_EQ(r.status, 1) << arguments;
    EXPECT_THAT(r.err, StartsWith(code)) << arguments;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

TEST_F(CliTest, WrongUsageIsTwo) {
  for (const char* arguments :
       {"", "dance", "run", "run g", "run g --steps -1 --fetch y", "run g --threads 0 --fetch y",
        "bench g --fetch y --dot f", "run g --fetch y --unknown", "run g --fetch"}) {
    EXPECT_EQ(Run(arguments).status, 2) << arguments;
  }
}

TEST_F(CliTest, BenchIsALineOfJson) {
  Result r =
      Run("bench " + graph() + " --feed x=1 --fetch z --seconds 0.1 --threads 1 --no-optimize");
  ASSERT_EQ(r.status, 0) << r.err;
  const nlohmann::json json = nlohmann::json::parse(r.out);
  EXPECT_THAT(json["name"].get<std::string>(), testing::EndsWith("graph"));
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_GT(json["runs"], 0);
  EXPECT_LE(json["min_us"], json["median_us"]);
  EXPECT_LE(json["median_us"], json["p99_us"]);
  EXPECT_GT(json["startup_ms"], 0);
  EXPECT_GT(json["resident_kb"], 1000);
}

TEST_F(CliTest, GraphShowsAPlan) {
  const std::string file = folder_ + "placed.pbtxt";
  std::ofstream(file) << R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "a" op: "Exp" input: "x" device: "/device:CPU:0"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "b" op: "Neg" input: "a" device: "/device:CPU:1"
           attr { key: "T" value { type: DT_FLOAT } } })";
  const std::string pictures = " --dot " + folder_ + "dot --svg " + folder_ + "svg";
  Result r = Run("graph " + file + " --devices 2 --feed x" + pictures);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("transfer: edge_0_a:0 from /job:localhost/replica:0/task:0/device:"
                               "CPU:0 to /job:localhost/replica:0/task:0/device:CPU:1\n"));
  const std::string dot = ReadFile(folder_ + "dot");
  EXPECT_THAT(dot, HasSubstr("subgraph cluster_1 {"));
  EXPECT_THAT(dot, HasSubstr("_Recv"));
  EXPECT_THAT(ReadFile(folder_ + "svg"), HasSubstr("device:CPU:1"));
  // Tasks of a cluster, by name.
  const std::string tasks =
      " --devices /job:ps/replica:0/task:0/device:CPU:0,/job:w/replica:0/task:0/device:CPU:1";
  EXPECT_THAT(Run("graph " + file + tasks + " --fetch b").out, HasSubstr("to /job:w/replica:0"));
  EXPECT_EQ(Run("graph " + file + " --devices 1").status, 1);  // Where is CPU:1?
  EXPECT_EQ(Run("graph " + file + " --devices 0").status, 1);
  EXPECT_EQ(Run("graph " + file + " --devices cpu").status, 1);
  EXPECT_EQ(Run("graph " + file + " --fetch b").status, 2);
}

TEST_F(CliTest, GraphSaysWhatIsMissing) {
  Result r = Run("graph " + graph() + " --dot " + folder_ + "dot --svg " + folder_ + "svg");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("7 nodes"));
  EXPECT_THAT(ReadFile(folder_ + "dot"), HasSubstr("digraph"));
  EXPECT_THAT(ReadFile(folder_ + "svg"), HasSubstr("</svg>"));
  const std::string other = folder_ + "other.pbtxt";
  std::ofstream(other) << R"(
    node { name: "a" op: "NoSuchOp" } node { name: "b" op: "NoSuchOp" }
    node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_HALF } }
           attr { key: "value" value { tensor { dtype: DT_HALF tensor_shape {} half_val: 0 } } } }
    node { name: "d" op: "Rint" input: "c" attr { key: "T" value { type: DT_HALF } } })";
  r = Run("graph " + other);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, HasSubstr("missing op: NoSuchOp (2 nodes)\n"));
  EXPECT_THAT(r.out, HasSubstr("missing kernel: Rint half (1 nodes)\n"));
}

TEST_F(CliTest, ATimeoutEndsARun) {
  Result r = Run("run " + graph() + " --feed x=1 --fetch z --timeout 0");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("DEADLINE_EXCEEDED: "));
}

}  // namespace
