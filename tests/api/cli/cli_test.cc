// Runs the program `troupe` as a user would.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "api/program/child_process.h"
#include "api/version.h"
#include "tests/api/cli/run_troupe.h"

namespace {

using testing::HasSubstr;
using testing::StartsWith;

class CliTest : public TroupeTest {
 protected:
  CliTest() : TroupeTest(testing::TempDir() + "troupe_cli_" + std::to_string(getpid()) + "_") {
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
      {"log --master 127.0.0.1:1", "INVALID_ARGUMENT: "},
      {"log --master troupe://127.0.0.1:1 --task nobody", "INVALID_ARGUMENT: "},
      {"log --master troupe://127.0.0.1:1 --task /job:worker/task:-1", "INVALID_ARGUMENT: "},
      {"log --master troupe://127.0.0.1:1", "UNAVAILABLE: "},
      {"tracing --master troupe://127.0.0.1:1 --out /no/such/t", "NOT_FOUND: "},
  };
  for (const auto& [arguments, code] : cases) {
    Result r = Run(arguments);
    EXPECT_EQ(r.status, 1) << arguments;
    EXPECT_THAT(r.err, StartsWith(code)) << arguments;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

TEST_F(CliTest, ALevelOfTheLogThatDoesNotExistIsAWarning) {
  const Result r =
      Shell("TROUPE_LOG_LEVEL=loud " TROUPE_PROGRAM " graph " + graph() + " >/dev/null");
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.err, HasSubstr(" W - TROUPE_LOG_LEVEL: \"loud\" is no level of a log; expected"));
}

TEST_F(CliTest, WrongUsageIsTwo) {
  for (const char* arguments :
       {"", "dance", "run", "run g", "run g --steps -1 --fetch y", "run g --threads 0 --fetch y",
        "bench g --fetch y --dot f", "run g --fetch y --unknown", "run g --fetch", "log",
        "log --master m --lines -1", "log --master m --lines 1001", "log --master m --level loud",
        "tracing --master m", "tracing --out t", "tracing --master m --out t --seconds -1",
        "tracing --master m --out t --seconds 601", "tracing --master m --out t --seconds nan"}) {
    EXPECT_EQ(Run(arguments).status, 2) << arguments;
  }
}

TEST_F(CliTest, WrongUsageIsOneLineThatNamesTheHelp) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "troupe: A subcommand is required; see troupe --help"},
      {"dance", "troupe: unknown command \"dance\"; see troupe --help"},
      {"run g --threads 0 --fetch y",
       "troupe run: --threads: takes a whole number, at least 1, at most 4096, not \"0\"; see "
       "troupe "
       "run --help"},
      {"run g --steps 1.5 --fetch y", "not \"1.5\""},
      {"run g --timeout nan --fetch y", "not \"nan\""},
      {"run g --fetch y --log-level loud",
       "--log-level: \"loud\" is no level of a log; expected trace, debug, info, warning, error "
       "or off; see troupe run --help"},
      {"run g --feed x --fetch y", "takes NAME=VALUE, not \"x\""},
      {"run g", "nothing to run: give a --fetch or a --target; see troupe run --help"},
      {"graph g --fetch y", "give --devices; see troupe graph --help"},
      {"worker --cluster " + graph() + " --what", "--what; see troupe worker --help"},
      {"cluster", "FILE is required; see troupe cluster --help"}};
  for (const auto& [arguments, says] : cases) {
    const Result r = Run(arguments);
    EXPECT_EQ(r.status, 2) << arguments;
    EXPECT_THAT(r.err, HasSubstr(says));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_EQ(r.out, "");
  }
}

TEST_F(CliTest, EveryCommandHasHelpAndVersion) {
  for (const std::string command :
       {"", "run ", "bench ", "graph ", "worker ", "cluster ", "certificates ", "leave ", "log ",
        "tracing ", "freeze ", "checkpoint ", "records "}) {
    for (const char* help : {"--help", "-h"}) {
      const Result r = Run(command + help);
      EXPECT_EQ(r.status, 0) << command;
      EXPECT_THAT(r.out, HasSubstr("Usage: troupe " + command)) << command;
      EXPECT_EQ(r.err, "");
    }
    const Result r = Run(command + "--version");
    EXPECT_EQ(r.status, 0) << command;
    EXPECT_EQ(r.out, "troupe " TROUPE_VERSION "\n");
  }
  EXPECT_EQ(Run("help").out, Run("--help").out);
  EXPECT_THAT(Run("worker --help").out, HasSubstr("--join HOST:PORT"));
  EXPECT_NE(Run("--help >/dev/full").status, 0);
}

TEST_F(CliTest, ValuesAreCastIfNothingIsLost) {
  const auto identity = [](const char* type) {
    return std::string(
               "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: ") +
           type +
           " } } } node { name: \"y\" op: \"Identity\" input: \"x\" attr { key: \"T\" value "
           "{ type: " +
           type + " } } }";
  };
  const struct {
    const char *type, *value, *printed;  // nullptr: it is refused.
  } cases[] = {
      {"DT_FLOAT", "[1,NaN,Infinity,-Infinity]", "[4] [1.0,NaN,Infinity,-Infinity]"},
      {"DT_HALF", "NaN", "[] NaN"},
      {"DT_FLOAT", "0.1", "[] 0.100000001"},
      {"DT_DOUBLE", "3", "[] 3.0"},
      {"DT_FLOAT", "1e39", nullptr},
      {"DT_HALF", "70000", nullptr},
      {"DT_FLOAT", "true", nullptr},
      {"DT_FLOAT", "\"NaN\"", nullptr},
      {"DT_INT32", "[1.0,2e3,-7]", "[3] [1,2000,-7]"},
      {"DT_INT32", "1.5", nullptr},
      {"DT_INT32", "true", nullptr},
      {"DT_INT32", "NaN", nullptr},
      {"DT_INT32", "2147483648", nullptr},
      {"DT_INT32", "1e10", nullptr},
      {"DT_INT8", "-129", nullptr},
      {"DT_UINT8", "-1", nullptr},
      {"DT_UINT64", "18446744073709551615", "[] 18446744073709551615"},
      {"DT_INT64", "18446744073709551615", nullptr},
      {"DT_INT64", "-9223372036854775808", "[] -9223372036854775808"},
      {"DT_BOOL", "[true,false,1,0]", "[4] [true,false,true,false]"},
      {"DT_BOOL", "2", nullptr},
      {"DT_COMPLEX64", "1.5", "[] [1.5,0.0]"},
      {"DT_STRING", "[\"NaN\",\"a\\\\\\\"NaN\"]", "[2] [\"NaN\",\"a\\\\\\\"NaN\"]"},
      {"DT_STRING", "NaN", nullptr},
      {"DT_STRING", "1", nullptr},
      {"DT_QINT8", "[-128,127]", "[2] [-128,127]"},
      {"DT_QUINT16", "-1", nullptr},
      {"DT_INT4", "[-8,7.0]", "[2] [-8,7]"},
      {"DT_INT4", "8", nullptr},
      {"DT_UINT4", "-1", nullptr},
      {"DT_FLOAT8_E5M2", "[0.3,NaN,-Infinity]", "[3] [0.312,NaN,-Infinity]"},
      {"DT_FLOAT8_E5M2", "1e9", nullptr},
      {"DT_FLOAT8_E4M3FN", "[448,NaN]", "[2] [448.0,NaN]"},
      {"DT_FLOAT8_E4M3FN", "500", nullptr},
      {"DT_FLOAT8_E4M3FN", "Infinity", nullptr},
  };
  const std::string file = folder_ + "identity.pbtxt";
  for (const auto& c : cases) {
    std::ofstream(file) << identity(c.type);
    const Result r = Run("run " + file + " --feed 'x=" + c.value + "' --fetch y");
    EXPECT_EQ(r.status, c.printed == nullptr ? 1 : 0) << c.type << " " << c.value << " " << r.err;
    if (c.printed != nullptr) {
      EXPECT_THAT(r.out, testing::EndsWith(std::string(" ") + c.printed + "\n"));
    } else {
      EXPECT_THAT(r.err, StartsWith("INVALID_ARGUMENT: feed x: ")) << c.value;
    }
  }
}

TEST_F(CliTest, BytesThatAreNoTextAreEscaped) {
  const std::string file = folder_ + "bytes.pbtxt";
  std::ofstream(file) << R"(
    node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape {}
                  string_val: "a\377\"\303\251\303\n" } } } })";
  EXPECT_EQ(Run("run " + file + " --fetch c").out, "c string [] \"a\\xff\\\"\xc3\xa9\\xc3\\n\"\n");
}

TEST_F(CliTest, OutputThatCannotBeWrittenIsAnError) {
  const std::string run = TROUPE_PROGRAM " run " + graph() + " --feed x=1 ";
  Result r = Shell(run + "--fetch y >/dev/full");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr("standard output cannot be written"));
  r = Shell(TROUPE_PROGRAM " bench " + graph() + " --feed x=1 --fetch y --seconds 0.01 >/dev/full");
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(Shell(TROUPE_PROGRAM " graph " + graph() + " >/dev/full").status, 1);
  // Files are tried before the steps.
  r = Shell(run + "--steps 1000000000000 --fetch y=/no/such/folder/y.npy");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("NOT_FOUND: fetch y: cannot write /no/such/folder/y.npy"));
  // The trial leaves nothing behind, and an older file as it is.
  const std::string file = folder_ + "tried.npy";
  EXPECT_EQ(Run("run " + graph() + " --fetch y=" + file).status, 1);
  EXPECT_FALSE(std::ifstream(file).good());
  std::ofstream(file) << "older";
  EXPECT_EQ(Run("run " + graph() + " --fetch y=" + file).status, 1);
  EXPECT_EQ(ReadFile(file), "older");
}

TEST_F(CliTest, LargeResultsAreSummarizedOnATerminalOnly) {
  const std::string file = folder_ + "large.pbtxt";
  std::ofstream(file) << R"(
    node { name: "s" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } }
                  int_val: 50 int_val: 40 } } } }
    node { name: "v" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 7 } } } }
    node { name: "f" op: "Fill" input: "s" input: "v" attr { key: "T" value { type: DT_INT32 } } })";
  const std::string run = TROUPE_PROGRAM " run " + file + " --fetch f";
  const Result whole = Shell(run);
  EXPECT_EQ(std::count(whole.out.begin(), whole.out.end(), '7'), 2000);
  const Result brief = Shell("script -qec '" + run + "' /dev/null");
  const std::string row = "[7,7,7,...,7,7,7]", rows = row + "," + row + "," + row;
  EXPECT_EQ(brief.out, "f int32 [50,40] [" + rows + ",...," + rows + "]\r\n");
}

TEST_F(CliTest, LongRunsSayHowFarTheyAreOnATerminal) {
  const std::string run =
      TROUPE_PROGRAM " run " + graph() + " --init init --target count --threads 1 --steps ";
  EXPECT_THAT(Shell("timeout -s INT 2 script -qec '" + run + "1000000000' /dev/null").out,
              testing::ContainsRegex("step [0-9]+ of 1000000000, [0-9]+ steps/s"));
  EXPECT_EQ(Shell(run + "200000").err, "");
}

TEST_F(CliTest, AnInterruptSaysWhatWasDone) {
  auto run =
      troupe::ChildProcess::Start({.arguments = {TROUPE_PROGRAM, "run", graph(), "--init", "init",
                                                 "--fetch", "count", "--steps", "1000000000000"},
                                   .output = true,
                                   .errors = true});
  ASSERT_TRUE(run.ok()) << run.status();
  // Bit 1 of the signals that it catches is SIGINT's.
  const std::string status = "/proc/" + std::to_string(run->pid()) + "/status";
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  for (bool catches = false; !catches && absl::Now() < limit;) {
    const std::string text = ReadFile(status);
    const size_t at = text.find("SigCgt:");
    catches = at != std::string::npos && (std::stoull(text.substr(at + 7), nullptr, 16) & 2) != 0;
  }
  run->Signal(SIGINT);
  const std::string output = run->Rest(absl::Seconds(30));
  EXPECT_EQ(run->Wait(absl::Seconds(30)).value_or(troupe::ExitStatus()).code, 130);
  EXPECT_THAT(output, testing::ContainsRegex("stopped after [0-9]+ of 1000000000000 steps\n"));
}

TEST_F(CliTest, PicturesNeedGraphviz) {
  const std::string svg = folder_ + "svg";
  Result r = Shell("PATH=/nowhere " TROUPE_PROGRAM " graph " + graph() + " --svg " + svg);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("FAILED_PRECONDITION: cannot draw " + svg));
  EXPECT_THAT(r.err, HasSubstr("install graphviz, or take --dot"));
  r = Run("graph " + graph() + " --svg /no/such/folder/svg");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr("/no/such/folder/svg"));
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

// --- record files --------------------------------------------------------------------------------

constexpr char kExamples[] = "tests/api/input/testdata/examples.gz";
constexpr char kRecords[] = "tests/devices/storage/testdata/records";

TEST_F(CliTest, RecordsAreCounted) {
  const std::string records = kRecords;
  Result r = Run("records " + records + " --count " + kExamples);
  EXPECT_EQ(r.out, records + ": 4\n" + kExamples + ": 4\n") << r.err;
  r = Run("records '" + records + "*'");
  EXPECT_EQ(r.out, records + ": 4\n" + records + ".gzip: 4\n" + records + ".zlib: 4\n") << r.err;
  r = Run("records '" + records + "?'");
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.err, "NOT_FOUND: " + records + "?: no file matches\n");
  r = Run("records " + records + " --verify");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "");
  r = Run("records " + records + " --compression gzip");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("DATA_LOSS: "));
  EXPECT_EQ(Run("records " + records + " --compression snappy").status, 2);
  EXPECT_EQ(Run("records").status, 2);
}

TEST_F(CliTest, RecordsAreShown) {
  Result r = Run(std::string("records --head 1 --examples ") + kExamples);
  EXPECT_EQ(r.out, "empty=[] half=[0.0] number=[0,0] text=[\"text 0\",\"\\xff\"]\n") << r.err;
  r = Run(std::string("records --head 99 --examples --count ") + kExamples);
  EXPECT_THAT(r.out, HasSubstr("\ntitle=[\"of three\"] steps=[[0],[1],[2]]\n")) << r.err;
  EXPECT_THAT(r.out, testing::EndsWith(": 4\n"));
  r = Run(std::string("records --head 1 ") + kExamples);
  EXPECT_THAT(r.out, HasSubstr("text 0"));
  EXPECT_THAT(r.out, HasSubstr("\\x0a"));
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 1);
}

TEST_F(CliTest, RecordsThatAreDamagedAreNamed) {
  const std::string bytes = ReadFile(kRecords), file = folder_ + "damaged";
  std::ofstream(file, std::ios::binary) << bytes.substr(0, bytes.size() - 1);
  Result r = Run("records --verify " + file);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("DATA_LOSS: " + file + ", record at byte "));
  EXPECT_THAT(r.err, HasSubstr("it is cut off: 1 bytes are missing"));
  EXPECT_EQ(Run("records --head 1 " + file).status, 0);
  r = Run("records " + folder_ + "nothing");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("NOT_FOUND: "));
}

// --- checkpoints ---------------------------------------------------------------------------------

/// What TensorFlow has saved: w, layer/b, global_step; and a table in three parts beside.
const char* const kSaved = "tests/api/training/testdata/savers/";

TEST_F(CliTest, CheckpointsAreListed) {
  const std::string three =
      "global_step int64 [] 8\n"
      "layer/b double [3] 24\n";
  Result r = Run(std::string("checkpoint ") + kSaved + "partitioned");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, three + "table float [7,2] 56\nw float [2,3] 24\n");
  r = Run(std::string("checkpoint ") + kSaved + "v1 --verify");
  EXPECT_EQ(r.out, three + "w float [2,3] 24\n") << r.err;
  r = Run(std::string("checkpoint '") + kSaved + "v1_sharded-\?\?\?\?\?-of-00002'");
  EXPECT_EQ(r.out, "b double [3] 24\nu int32 [2] 8\nw float [2,3] 24\n") << r.err;
}

TEST_F(CliTest, TensorsOfCheckpoints) {
  const std::string file = folder_ + "b.npy";
  Result r = Run(std::string("checkpoint ") + kSaved + "plain --tensor w --tensor layer/b=" + file);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "w float [2,3] [[0.5,1.5,2.5],[3.5,4.5,5.5]]\n");
  EXPECT_THAT(ReadFile(file), HasSubstr("'descr': '<f8'"));
  r = Run(std::string("checkpoint ") + kSaved + "plain --tensor nothing");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("NOT_FOUND: "));
  r = Run("checkpoint " + folder_ + "nowhere");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr(folder_ + "nowhere"));
}

TEST_F(CliTest, CheckpointsOfObjectsHaveFullNames) {
  const std::string objects = "checkpoint tests/api/training/testdata/objects";
  const std::string bias = "again/bias/.ATTRIBUTES/VARIABLE_VALUE float [2] 8";
  Result r = Run(objects);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr(bias + "\n"));
  r = Run(objects + " --full-names");
  EXPECT_THAT(r.out, HasSubstr(bias + " dense/bias\n"));
  EXPECT_THAT(r.out, StartsWith("_CHECKPOINTABLE_OBJECT_GRAPH string [] "));
  r = Run(objects + " --tensor dense/bias --tensor step/.ATTRIBUTES/VARIABLE_VALUE --tensor " +
          "dense/bias=" + folder_ + "bias.npy");
  EXPECT_EQ(r.out, "dense/bias float [2] [5.0,6.0]\nstep/.ATTRIBUTES/VARIABLE_VALUE int64 [] 9\n")
      << r.err;
  EXPECT_THAT(ReadFile(folder_ + "bias.npy"), HasSubstr("'descr': '<f4'"));
  r = Run(objects + " --tensor twice");
  EXPECT_THAT(r.err, StartsWith("INVALID_ARGUMENT: "));
}

TEST_F(CliTest, CheckpointsAreCompared) {
  const std::string plain = std::string(kSaved) + "plain", other = folder_ + "other";
  Result r = Run("checkpoint " + plain + " --diff " + kSaved + "resource");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "");
  r = Run("checkpoint " + plain + " --diff " + kSaved + "partitioned");
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.out, "+ table float [7,2] 56\n");
  // u and w of other shapes are only there; b has another type.
  r = Run(std::string("checkpoint ") + kSaved + "sharded --diff " + plain);
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.out,
            "- b double [3] 24\n"
            "+ global_step int64 [] 8\n"
            "+ layer/b double [3] 24\n"
            "- u int32 [2] 8\n");
}

TEST_F(CliTest, DamagedCheckpointsAreNamed) {
  for (const char* part : {".index", ".data-00000-of-00001"}) {
    std::filesystem::copy_file(std::string(kSaved) + "plain" + part, folder_ + "m" + part);
  }
  const std::string data = folder_ + "m.data-00000-of-00001", index = folder_ + "m.index";
  EXPECT_EQ(Run("checkpoint " + folder_ + "m --verify").status, 0);
  {
    std::fstream file(data);
    file.seekp(40);  // In w, which comes last.
    file.put('x');
  }
  Result r = Run("checkpoint " + folder_ + "m --verify");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("DATA_LOSS: "));
  EXPECT_THAT(r.err, HasSubstr("'w'"));
  {
    std::fstream file(index);
    file.seekp(20);
    file.put('x');
  }
  r = Run("checkpoint " + folder_ + "m --verify");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr(index));
}

TEST_F(CliTest, RunsBeginWithACheckpoint) {
  const std::string training = "examples/tensorflow_graphs/training_v1.pbtxt";
  const std::string saved = folder_ + "line";
  // The node that saves is fed the name.
  Result r = Run("run " + training + " --init init --init save/Identity --feed 'save/Const=\"" +
                 saved + "\"' --feed x=[1] --feed y=[3] --target train --steps 5");
  ASSERT_EQ(r.status, 0) << r.err;
  r = Run("run " + training + " --init init --feed x=[1] --feed y=[3] --target train --steps 5");
  ASSERT_EQ(r.status, 0) << r.err;
  r = Run("run " + training + " --checkpoint " + saved + " --fetch w --fetch global_step");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "w float [] 0.0\nglobal_step int64 [] 0\n");
  r = Run("bench " + training + " --seconds 0.1 --checkpoint " + saved + " --fetch w");
  EXPECT_EQ(r.status, 0) << r.err;
  // v is of another type there.
  r = Run("run " + graph() + " --checkpoint " + kSaved + "plain --init init --fetch count");
  EXPECT_EQ(r.out, "count int64 [] 2\n") << r.err;
  r = Run("run " + training + " --checkpoint " + kSaved + "plain --init init --fetch w");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr("tensor 'w' has the shape [2,3] there"));
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
  // The graph's own functions are no missing ops.
  const std::string with_function = folder_ + "function.pbtxt";
  std::ofstream(with_function) << R"(
    node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } }
    node { name: "b" op: "Twice" input: "a" }
    library { function {
      signature { name: "Twice" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
      node_def { name: "sum" op: "Add" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "y" value: "sum:z:0" } } })";
  r = Run("graph " + with_function);
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_THAT(r.out, Not(HasSubstr("missing")));
}

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;

Certificate ReadCertificate(const std::string& file) {
  const Bio in(BIO_new_file(file.c_str(), "r"));
  return Certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
}

/// Its alternative names, as OpenSSL writes them.
std::string NamesOf(X509* certificate) {
  const int at = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
  if (at < 0) return "";
  const Bio out(BIO_new(BIO_s_mem()));
  X509V3_EXT_print(out.get(), X509_get_ext(certificate, at), 0, 0);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);  // NOLINT: OpenSSL's type
  return {text, static_cast<size_t>(size)};
}

class CertificatesTest : public CliTest {
 protected:
  CertificatesTest() {
    std::ofstream(cluster()) << R"({"ps": ["h:1", "h:2"], "worker": ["h:3"]})";
    std::filesystem::remove_all(out());
  }
  ~CertificatesTest() override { std::filesystem::remove_all(out()); }
  std::string cluster() const { return folder_ + "cluster.json"; }
  std::string out() const { return folder_ + "tls"; }
  Result Make(const std::string& more = "") {
    return Run("certificates " + cluster() + " --out " + out() + " " + more);
  }
};

TEST_F(CertificatesTest, NameTasksAndClients) {
  ASSERT_EQ(Make("--days 3").status, 0);
  const Certificate authority = ReadCertificate(out() + "/ca.pem");
  ASSERT_NE(authority, nullptr);
  EXPECT_EQ(X509_check_ca(authority.get()), 1);
  const std::pair<std::string, std::string> cases[] = {
      {"ca", ""},
      {"client", "URI:troupe:client"},
      {"job-ps-task-0", "URI:troupe:/job:ps/replica:0/task:0, URI:troupe:client"},
      {"job-ps-task-1", "URI:troupe:/job:ps/replica:0/task:1, URI:troupe:client"},
      {"job-worker-task-0", "URI:troupe:/job:worker/replica:0/task:0, URI:troupe:client"}};
  for (const auto& [name, names] : cases) {
    SCOPED_TRACE(name);
    const std::string stem = out() + "/" + name;
    const Certificate certificate = ReadCertificate(stem + ".pem");
    ASSERT_NE(certificate, nullptr);
    EXPECT_EQ(NamesOf(certificate.get()), names);
    EXPECT_EQ(X509_verify(certificate.get(), X509_get0_pubkey(authority.get())), 1);
    EXPECT_EQ(X509_check_issued(authority.get(), certificate.get()), X509_V_OK);
    EXPECT_EQ(X509_check_ca(certificate.get()) != 0, name == "ca");
    int days = 0, seconds = 0;
    ASSERT_EQ(ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get())), 1);
    EXPECT_NEAR(days * 86400 + seconds, 3 * 86400, 60);
    EXPECT_LT(X509_cmp_current_time(X509_get0_notBefore(certificate.get())), 0);
    const Bio in(BIO_new_file((stem + ".key").c_str(), "r"));
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr);
    ASSERT_NE(key, nullptr);
    EXPECT_EQ(X509_check_private_key(certificate.get(), key), 1);
    char curve[32] = "";
    EVP_PKEY_get_utf8_string_param(key, "group", curve, sizeof(curve), nullptr);
    EXPECT_EQ(curve, std::string("prime256v1"));
    EVP_PKEY_free(key);
    struct stat about {};
    ASSERT_EQ(stat((stem + ".key").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u);
  }
  const std::filesystem::directory_iterator files(out());
  EXPECT_EQ(std::distance(begin(files), end(files)), 10);
}

TEST_F(CertificatesTest, NothingIsOverwritten) {
  std::filesystem::create_directory(out());
  for (const char* file : {"/client.key", "/job-ps-task-1.pem", "/ca.key"}) {
    std::ofstream(out() + file) << "mine";
    const Result r = Make();
    EXPECT_EQ(r.status, 1);
    EXPECT_THAT(r.err, StartsWith("ALREADY_EXISTS: " + out() + file));
    EXPECT_EQ(ReadFile(out() + file), "mine");
    std::filesystem::remove(out() + file);
    EXPECT_TRUE(std::filesystem::is_empty(out())) << "nothing is half done";
  }
  // A link that leads nowhere would be written through.
  std::filesystem::create_symlink(folder_ + "elsewhere", out() + "/ca.key");
  EXPECT_THAT(Make().err, StartsWith("ALREADY_EXISTS: "));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "elsewhere"));
  std::filesystem::remove(out() + "/ca.key");
  EXPECT_EQ(Make().status, 0);
  EXPECT_THAT(Make().err, StartsWith("ALREADY_EXISTS: "));
}

TEST_F(CertificatesTest, AnAuthoritySignsForMoreTasks) {
  ASSERT_EQ(Make().status, 0);
  const std::string more = folder_ + "more";
  const std::string command =
      "certificates " + cluster() + " --out " + more + " --authority " + out();
  ASSERT_EQ(Run(command).status, 0);
  EXPECT_EQ(ReadFile(more + "/ca.pem"), ReadFile(out() + "/ca.pem"));
  EXPECT_FALSE(std::filesystem::exists(more + "/ca.key")) << "it stays where it is";
  const Certificate authority = ReadCertificate(out() + "/ca.pem");
  const Certificate client = ReadCertificate(more + "/client.pem");
  EXPECT_EQ(X509_verify(client.get(), X509_get0_pubkey(authority.get())), 1);
  EXPECT_NE(ReadFile(more + "/client.pem"), ReadFile(out() + "/client.pem"));
  std::filesystem::remove_all(more);
  std::filesystem::copy(out() + "/client.key", out() + "/ca.key",
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Run(command).err, StartsWith("INVALID_ARGUMENT: "));
  std::filesystem::remove(out() + "/ca.key");
  EXPECT_THAT(Run(command).err, StartsWith("NOT_FOUND: "));
  EXPECT_FALSE(std::filesystem::exists(more));
}

TEST_F(CertificatesTest, BadRequests) {
  EXPECT_EQ(Run("certificates").status, 2);
  EXPECT_THAT(Run("certificates " + cluster()).err, HasSubstr("--out is required"));
  EXPECT_EQ(Make("--days 0").status, 2);
  EXPECT_EQ(Make("--days 36501").status, 2);
  EXPECT_THAT(Run("certificates /no/such/file --out " + out()).err, StartsWith("NOT_FOUND: "));
  EXPECT_THAT(Run("certificates " + graph() + " --out " + out()).err,
              StartsWith("INVALID_ARGUMENT: "));
  EXPECT_FALSE(std::filesystem::exists(out()));
  EXPECT_THAT(Run("certificates " + cluster() + " --out /no/such/folder").err,
              StartsWith("NOT_FOUND: cannot make the folder /no/such/folder"));
  EXPECT_EQ(Run("worker --cluster " + cluster() + " --certificates d --tls-cert f").status, 2);
}

TEST_F(CliTest, ATimeoutEndsARun) {
  Result r = Run("run " + graph() + " --feed x=1 --fetch z --timeout 0");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("DEADLINE_EXCEEDED: "));
}

}  // namespace
