// A worker that shows devices of a type that a library adds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "api/extension.h"
#include "api/session.h"
#include "graph/graph.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class DeviceWorkerTest : public ::testing::Test {
 protected:
  DeviceWorkerTest() {
    std::ofstream(file_) << R"({"worker": ["127.0.0.1:)" << FreePort() << "\"]}";
    EXPECT_TRUE(LoadLibrary(library_).ok());
  }
  ~DeviceWorkerTest() override { std::remove(file_.c_str()); }

  std::vector<std::string> Arguments(const std::string& device) const {
    return {"worker", "--cluster", file_,  "--job",     "worker", "--task",
            "0",      "--device",  device, "--library", library_};
  }

  const std::string file_ = ::testing::TempDir() + "device_worker_" + std::to_string(getpid());
  const std::string library_ = TROUPE_EXTENSION_FOLDER "/twin.so";
};

TEST_F(DeviceWorkerTest, ASessionUsesItsDevices) {
  TroupeProcess worker(Arguments("TWIN=2"));
  const std::string ready = worker.Line();
  ASSERT_THAT(ready, StartsWith("ready troupe://"));
  auto graph = std::make_shared<Graph>();
  Output name(*graph->AddNode(NodeSpec("WhereAmI", "n").Device("/device:TWIN:1")));
  SessionOptions options;
  options.target = ready.substr(6);
  auto session = Session::Create(graph, options);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->ListDevices()->size(), 3);
  auto values = (*session)->Run({name});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].scalar<std::string>().value(),
            "/job:worker/replica:0/task:0/device:TWIN:1");
}

TEST_F(DeviceWorkerTest, WhatIsNotThereEndsIt) {
  EXPECT_THAT(TroupeProcess(Arguments("TWIN=5")).Line(),
              HasSubstr("INVALID_ARGUMENT: asked for 5 devices of type TWIN"));
  EXPECT_THAT(TroupeProcess(Arguments("WARP=1")).Line(), HasSubstr("there is no device type WARP"));
  EXPECT_THAT(TroupeProcess(Arguments("=1")).Line(), HasSubstr("--device takes TYPE=NUMBER"));
}

}  // namespace
}  // namespace troupe
