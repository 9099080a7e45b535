#include "net/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "net/address.h"
#include "net/json.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(ClusterSpec, ReadsJobsAndTasks) {
  const auto spec = ClusterSpec::Parse(
      R"({"ps": ["127.0.0.1:7000"], "worker": ["127.0.0.1:7001", "host-b.example:7002"]})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->num_tasks("ps"), 1);
  EXPECT_EQ(spec->num_tasks("worker"), 2);
  EXPECT_EQ(spec->num_tasks("chief"), 0);
  EXPECT_EQ(*spec->Address({"worker", 1}), "host-b.example:7002");
  EXPECT_EQ(spec->tasks().size(), 3u);
  EXPECT_EQ(*ClusterSpec::Parse(spec->ToJson()), *spec);
}

TEST(ClusterSpec, ReadsTheMemberClusterAndNumberedTasks) {
  const auto nested = ClusterSpec::Parse(R"({"cluster": {"worker": ["a:1", "b:1"]}})");
  const auto numbered = ClusterSpec::Parse(R"({"worker": {"1": "b:1", "0": "a:1"}})");
  ASSERT_TRUE(nested.ok() && numbered.ok()) << nested.status() << numbered.status();
  EXPECT_EQ(*nested, *numbered);
  // A job may be called "cluster".
  EXPECT_EQ(ClusterSpec::Parse(R"({"cluster": ["a:1"]})")->num_tasks("cluster"), 1);
  EXPECT_EQ(ClusterSpec::Parse(R"({"cluster": {"0": "a:1"}})")->num_tasks("cluster"), 1);
}

TEST(ClusterSpec, RefusesBadDescriptions) {
  const struct {
    const char* json;
    const char* message;
  } cases[] = {
      {"", "JSON"},
      {"{\"worker\": [\"a:1\"]", "syntax error"},
      {"{\"worker\": [\"a:1\"]} x", "syntax error"},
      {"[]", "expected an object of jobs"},
      {"{}", "no jobs"},
      {R"({"worker": []})", "has no tasks"},
      {R"({"worker": "a:1"})", "expected a list"},
      {R"({"worker": [7]})", "no string"},
      {R"({"9worker": ["a:1"]})", "no job name"},
      {R"({"a/b": ["a:1"]})", "no job name"},
      {R"({"worker": ["a"]})", "port is missing"},
      {R"({"worker": ["a:0"]})", "1 to 65535"},
      {R"({"worker": ["a:65536"]})", "1 to 65535"},
      {R"({"worker": ["a:99999999999"]})", "1 to 65535"},
      {R"({"worker": ["a:-1"]})", "1 to 65535"},
      {R"({"worker": [":1"]})", "host is missing"},
      {R"({"worker": ["a b:1"]})", "bad host name"},
      {R"({"worker": ["1.2.3:1"]})", "no IPv4 address"},
      {R"({"worker": ["::1:1"]})", "brackets"},
      {R"({"worker": ["[::1:1"]})", "bracket"},
      {R"({"worker": ["a:1", "a:1"]})", "also that of /job:worker/replica:0/task:0"},
      {R"({"ps": ["localhost:1"], "worker": ["127.0.0.1:1"]})", "also that of /job:ps"},
      {R"({"ps": ["A:1"], "worker": ["a:1"]})", "also that of /job:ps"},
      {R"({"worker": ["a:1"], "worker": ["b:1"]})", "twice"},
      {R"({"worker": {"0": "a:1", "2": "b:1"}})", "task 1 is missing"},
      {R"({"worker": {"x": "a:1"}})", "no task number"},
      {R"({"worker": {"0": 5}})", "no string"},
      {R"({"worker": [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]})", "levels deep"},
  };
  for (const auto& c : cases) {
    const auto spec = ClusterSpec::Parse(c.json);
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << c.json << spec.status();
    EXPECT_THAT(Message(spec.status()), HasSubstr(c.message)) << c.json;
  }
  EXPECT_THAT(Message(ClusterSpec::Parse(std::string(5 << 20, ' ')).status()),
              HasSubstr("more than"));
}

TEST(ClusterSpec, NamesWhatIsUnknown) {
  const auto spec = ClusterSpec::Parse(R"({"ps": ["a:1"], "worker": ["b:1"]})");
  EXPECT_THAT(Message(spec->Address({"chief", 0}).status()), HasSubstr("its jobs are: ps, worker"));
  EXPECT_THAT(Message(spec->Address({"worker", 1}).status()), HasSubstr("tasks 0 to 0"));
  EXPECT_TRUE(absl::IsNotFound(spec->Address({"worker", -1}).status()));
}

TEST(ClusterSpec, MapsDeviceNames) {
  EXPECT_EQ(TaskId::FromDeviceName("/job:worker/replica:0/task:3/device:CPU:0")->ToString(),
            "/job:worker/replica:0/task:3");
  EXPECT_EQ(TaskId::FromDeviceName("/job:ps/task:0")->job, "ps");
  EXPECT_FALSE(TaskId::FromDeviceName("/job:ps").ok());
  EXPECT_FALSE(TaskId::FromDeviceName("/job:ps/replica:1/task:0").ok());
  EXPECT_FALSE(TaskId::FromDeviceName("ps0").ok());
}

TEST(ClusterSpec, ReadsFiles) {
  EXPECT_TRUE(absl::IsNotFound(ClusterSpec::ReadFile("/nonexistent/cluster.json").status()));
  const std::string file =
      ::testing::TempDir() + "cluster_spec_test_" + std::to_string(getpid()) + ".json";
  std::ofstream(file) << R"({"worker": ["a:1", 7]})";
  const auto spec = ClusterSpec::ReadFile(file);
  EXPECT_THAT(Message(spec.status()), HasSubstr(file));
  std::remove(file.c_str());
}

TEST(TfConfig, ReadsClusterAndTask) {
  const auto config = ParseTfConfig(
      R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1},
          "environment": "cloud"})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task.ToString(), "/job:worker/replica:0/task:1");
  EXPECT_TRUE(ParseTfConfig(R"({"cluster": {"worker": ["a:1"]},
                                "task": {"type": "worker", "index": "0"}})")
                  .ok());
}

TEST(TfConfig, RefusesWhatDoesNotFit) {
  for (const char* json :
       {"{}", R"({"cluster": {"worker": ["a:1"]}})",
        R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}})",
        R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})",
        R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}})",
        R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0.5}})",
        R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}})",
        R"({"cluster": {"worker": ["a:1"]}, "task": 5})", R"({"cluster": [], "task": {}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTfConfig(json).status())) << json;
  }
}

TEST(Address, KnowsLoopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "10.0.0.1", "::", "example.com", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
  EXPECT_EQ(ParseHostPort("[::1]:80")->ToString(), "[::1]:80");
  EXPECT_FALSE(ParseHostPort("a:0").ok());
}

TEST(Address, DigitsAloneAreANumber) {
  EXPECT_EQ(ParseDigits("0", 0), 0);
  EXPECT_EQ(ParseDigits("007", 123), 7);
  EXPECT_EQ(ParseDigits("65535", 65535), 65535);
  EXPECT_EQ(ParseDigits("999999999", 999'999'999), 999'999'999);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "65536", "000001"}) {
    EXPECT_EQ(ParseDigits(text, 65535), std::nullopt) << text;
  }
}

TEST(Json, KeepsStringsAndNumbers) {
  const auto value = ParseJson(R"({"a": ["\u00e9\n", 12, -3, 1.5, true, null]})", 100, 3);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)["a"].dump(), "[\"\xc3\xa9\\n\",12,-3,1.5,true,null]");
}

TEST(Json, RefusesWhatIsGivenTwiceOrNestedTooDeep) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"a": 1, "b": 2, "a": 3})", "member \"a\" is given twice"},
      {R"([{"x": {"a": 1, "a": 2}}])", "member \"a\" is given twice"},
      {"[[[[1]]]]", "nested more than 3 levels deep"},
      {R"({"a": {"b": {"c": {}}}})", "nested more than 3 levels deep"},
      {R"({"a": [1, 2})", "syntax error at byte 12"},
      {"", "syntax error at byte 1"},
      {"[1e999]", "JSON: "},
      {"{\"\xff\": 1}", "syntax error at byte 3"}};
  for (const auto& [text, message] : wrong) {
    const auto value = ParseJson(text, 100, 3);
    EXPECT_TRUE(absl::IsInvalidArgument(value.status())) << text;
    EXPECT_THAT(Message(value.status()), HasSubstr(message)) << text;
  }
  EXPECT_TRUE(ParseJson(R"([{"a": 1}, {"a": 2}, {"b": {"a": 3}, "a": 4}])", 100, 3).ok());
  EXPECT_FALSE(ParseJson("[1, 2, 3]", 8, 3).ok());
}

}  // namespace
}  // namespace troupe
