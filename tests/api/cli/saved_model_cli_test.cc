// The program `troupe` on SavedModels, and with TensorFlow's configuration messages.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/api/cli/run_troupe.h"

namespace {

using testing::HasSubstr;
using testing::StartsWith;

class SavedModelCli : public TroupeTest {
 protected:
  SavedModelCli() : TroupeTest(testing::TempDir() + "troupe_saved_model_cli/") {
    std::filesystem::create_directories(folder_);
  }
  ~SavedModelCli() override { std::filesystem::remove_all(folder_); }

  const std::string v1_ = "tests/api/saved_model/testdata/v1";
  const std::string v2_ = "tests/api/saved_model/testdata/v2";
};

TEST_F(SavedModelCli, RunsSignatures) {
  Result r = Run("run " + v2_ + " --signature lookup --feed 'ids=[4,0,2]'");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "output_0 float [3,2] [[8.0,9.0],[0.0,1.0],[4.0,5.0]]\n");
  // The signature by default, all of its outputs by their names; state lasts from step to step.
  r = Run("run " + v2_ + " --feed 'x=[[0.5,-1,2],[1,0.25,-0.75]]'");
  EXPECT_EQ(r.out,
            "twice float [2,2] [[1.125,-3.25],[0.875,-3.25]]\n"
            "y float [2,2] [[0.5625,-1.625],[0.4375,-1.625]]\n");
  r = Run("run " + v2_ + " --signature count --feed n=5 --steps 3");
  EXPECT_EQ(r.out, "output_0 int64 [] 15\n") << r.err;
  // Names of the graph's tensors do as well.
  r = Run("run " + v2_ +
          " --feed 'serving_default_x:0=[[1,1,1]]' --fetch y --fetch b/Read/ReadVariableOp");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith("y float [1,2] [["));
  EXPECT_THAT(r.out, HasSubstr("\nb/Read/ReadVariableOp float [2] [0.25,-1.0]\n"));
  r = Run("run " + v1_ + " --tag train --tag gpu --feed 'in=[[0.5,-1,2]]'");
  EXPECT_EQ(r.out, "out float [1,2] [[-7.0,-9.5]]\n") << r.err;
  r = Run("bench " + v2_ + " --feed 'x=[[1,1,1]]' --seconds 0.05");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("\"median_us\""));
}

TEST_F(SavedModelCli, SaysWhatIsWrong) {
  Result r = Run("run " + v1_ + " --tag nobody");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("NOT_FOUND: "));
  EXPECT_THAT(r.err, HasSubstr("those there are: {serve}, {train, gpu}"));
  r = Run("run " + v2_ + " --signature nobody");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr("it has count, lookup, serving_default"));
  r = Run("run " + v2_ + " --feed z=1");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr("the signature's inputs are x"));
  r = Run("run " + folder_ + " --fetch x");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr("saved_model.pb"));
  std::ofstream(folder_ + "/graph.pbtxt") << "node { name: 'a' op: 'NoOp' }";
  for (const char* option : {"--signature s", "--tag t"}) {
    r = Run("run " + folder_ + "/graph.pbtxt --target a " + option);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_THAT(r.err, HasSubstr("goes with a SavedModel's folder"));
  }
}

TEST_F(SavedModelCli, ShowsAndFreezes) {
  Result r = Run("graph " + v2_);
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_THAT(r.out, HasSubstr("tag: serve\n"));
  EXPECT_THAT(r.out, HasSubstr("signature: lookup\n  input ids: lookup_ids:0 int32 [?]\n"
                               "  output output_0: StatefulPartitionedCall_1:0 float [?,2]\n"));
  r = Run("graph " + v1_);
  EXPECT_THAT(r.out, HasSubstr("asset: words.txt (words_file:0)\n"));

  const std::string frozen = folder_ + "/frozen.pb";
  r = Run("freeze " + v2_ + " --out " + frozen);
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("outputs StatefulPartitionedCall_2:0 StatefulPartitionedCall_2:1"));
  r = Run("run " + frozen +
          " --feed 'serving_default_x=[[0.5,-1,2],[1,0.25,-0.75]]' "
          "--fetch StatefulPartitionedCall_2:1");
  EXPECT_EQ(r.out, "StatefulPartitionedCall_2:1 float [2,2] [[0.5625,-1.625],[0.4375,-1.625]]\n")
      << r.err;
  r = Run("graph " + frozen);
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, testing::Not(HasSubstr("Var")));
  r = Run("freeze " + v2_ + " --signature count --out " + folder_ + "/no.pb");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, StartsWith("FAILED_PRECONDITION: cannot freeze: "));
  EXPECT_EQ(Run("freeze " + v2_).status, 2);
}

TEST_F(SavedModelCli, TakesConfigurations) {
  Result r = Run("run " + v2_ +
                 " --signature lookup --feed 'ids=[1]' "
                 "--config 'log_device_placement: true placement_period: 3'");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("not honored here: placement_period"));
  EXPECT_THAT(r.err, HasSubstr("(VarHandleOp)"));
  EXPECT_THAT(r.err, HasSubstr("/device:CPU:0: "));
  std::ofstream(folder_ + "/run_options.txt") << "timeout_in_ms: 60000";
  r = Run("run " + v2_ + " --signature lookup --feed 'ids=[1]' --run-options " + folder_ +
          "/run_options.txt --config 'device_count { key: \"CPU\" value: 2 }'");
  EXPECT_EQ(r.status, 0) << r.err;
  r = Run("run " + v2_ + " --config 'no_such: 1'");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.err, HasSubstr("has no field named \"no_such\""));
  r = Run("worker --server-def 'job_name: \"ps\"'");
  EXPECT_EQ(r.status, 1);
  r = Run("worker --server-def 'job_name: \"ps\"' --job ps");
  EXPECT_EQ(r.status, 2);
}

}  // namespace
