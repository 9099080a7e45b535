// A type of device that a library adds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "api/extension.h"
#include "api/program/child_process.h"
#include "api/session.h"
#include "graph/graph.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DeviceTypeTest : public testing::Test {
 protected:
  DeviceTypeTest() {
    const absl::Status loaded = LoadLibrary(std::string(TROUPE_EXTENSION_FOLDER) + "/twin.so");
    EXPECT_TRUE(loaded.ok()) << loaded;
  }

  /// Asks a node on each of the devices where it is.
  absl::StatusOr<std::vector<Tensor>> Run(const SessionOptions& options,
                                          const std::vector<std::string>& devices) {
    auto graph = std::make_shared<Graph>();
    std::vector<Output> names;
    for (const std::string& device : devices) {
      auto node = graph->AddNode(NodeSpec("WhereAmI", StrCat("n", names.size())).Device(device));
      if (!node.ok()) return node.status();
      names.emplace_back(*node);
    }
    auto session = Session::Create(graph, options);
    if (!session.ok()) return session.status();
    const auto listed = (*session)->ListDevices();
    if (!listed.ok()) return listed.status();
    for (const DeviceAttributes& device : *listed) {
      descriptions_.push_back(device.name + " " + device.description);
    }
    return (*session)->Run(names);
  }
  std::vector<std::string> descriptions_;
};

TEST_F(DeviceTypeTest, NodesRunOnItBesideTheCpu) {
  const auto names = Run({.devices = {{"TWIN", {.count = 2, .visible = {3, 1, 0}}}}},
                         {"/device:TWIN:1", "/device:CPU:0", "/device:TWIN:0"});
  ASSERT_TRUE(names.ok()) << names.status();
  const std::string here = "/job:localhost/replica:0/task:0/device:";
  EXPECT_EQ((*names)[0].scalar<std::string>().value(), here + "TWIN:1");
  EXPECT_EQ((*names)[1].scalar<std::string>().value(), here + "CPU:0");
  EXPECT_EQ((*names)[2].scalar<std::string>().value(), here + "TWIN:0");
  EXPECT_THAT(descriptions_, ElementsAre(here + "CPU:0 ", here + "TWIN:0 twin number 3",
                                         here + "TWIN:1 twin number 1"));
}

TEST_F(DeviceTypeTest, WhatIsNotThereIsRefused) {
  struct {
    DeviceOptionsByType devices;
    const char* error;
  } kCases[] = {
      {{{"TWINS", {}}}, "there is no device type TWINS; there are "},
      {{{"twin", {}}}, "there is no device type twin; "},
      {{{"TWIN", {.count = 5}}}, "asked for 5 devices of type TWIN, but there are only 4"},
      {{{"TWIN", {.count = 3, .visible = {0, 1}}}}, "there are only 2 that are to be visible"},
      {{{"TWIN", {.count = -1}}}, "must be between 0 and 1024, not -1"},
      {{{"TWIN", {.visible = {4}}}}, "there is no TWIN device number 4: the machine has 4"},
      {{{"TWIN", {.visible = {-1}}}}, "there is no TWIN device number -1"},
      {{{"TWIN", {.visible = {2, 2}}}}, "TWIN device number 2 is named twice"},
      {{{"TWIN", {.memory_limit = -1}}}, "must be 0 (none) or more, not -1"},
      {{{"TWIN", {.memory_fraction = -0.5}}}, "must be above 0, up to 1, or 0 (none), not -0.5"},
      {{{"TWIN", {.memory_fraction = 1.5}}}, "must be above 0, up to 1, or 0 (none), not 1.5"},
      {{{"TWIN", {.memory_fraction = NAN}}}, "must be above 0, up to 1, or 0 (none), not nan"},
      {{{"TWIN", {.memory_limit = 1, .memory_fraction = 1}}}, "give one of them"},
      {{{"TWIN", {.allow_growth = false}}}, "say how much, by a limit or a share"},
      {{{"TWIN", {.memory_limit = 1, .allow_growth = false}}}, "has no memory of its own"},
      {{{"CPU", {.count = 0}}}, "a process needs a CPU device at least"},
      {{{"CPU", {.memory_limit = 1}}}, "the memory of CPU devices"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = Run({.devices = c.devices}, {""}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.error;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
  }
  const absl::Status share = Run({.devices = {{"TWIN", {.memory_fraction = 0.5}}}}, {""}).status();
  EXPECT_EQ(share, absl::UnimplementedError("a share of the memory of TWIN device number 0: this "
                                            "type of device does not tell how much is free"));
  const absl::Status status = Run({.devices = {{"TWIN", {}}}}, {"/device:TWIN:1"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/device:TWIN:1, which does not exist"));
}

TEST_F(DeviceTypeTest, NoneMayBeWanted) {
  const auto names =
      Run({.devices = {{"TWIN", {.count = 0}}, {"CPU", {.count = 2}}}}, {"/device:CPU:1"});
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(descriptions_.size(), 2);
}

class OtherFactory final : public DeviceFactory {
 public:
  absl::StatusOr<int> NumAvailable() override { return absl::UnavailableError("no driver"); }
  absl::StatusOr<std::unique_ptr<Device>> Create(const DeviceName&, int, int64_t,
                                                 const std::shared_ptr<ComputePool>&) override {
    return nullptr;
  }
};

TEST_F(DeviceTypeTest, ATypeHasOneFactory) {
  const auto add = [](const char* type, std::shared_ptr<DeviceFactory> factory) {
    static const char* name;
    static std::shared_ptr<DeviceFactory> made;
    name = type;
    made = std::move(factory);
    return RegisterExtension([](Extension& extension) {
      extension.DeviceType(name, made);
      return absl::OkStatus();
    });
  };
  EXPECT_TRUE(absl::IsAlreadyExists(add("TWIN", std::make_shared<OtherFactory>())));
  EXPECT_TRUE(absl::IsAlreadyExists(add("CPU", std::make_shared<OtherFactory>())));
  for (const char* type : {"", "twin2", "A B", "*", "7"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(add(type, std::make_shared<OtherFactory>()))) << type;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(add("NONE", nullptr)));
  EXPECT_TRUE(add("BROKEN", std::make_shared<OtherFactory>()).ok());
  EXPECT_TRUE(add("BROKEN", std::make_shared<OtherFactory>()).ok()) << "the same class";
  const absl::Status status = Run({.devices = {{"BROKEN", {}}}}, {""}).status();
  EXPECT_EQ(status, absl::UnavailableError("no driver"));
}

TEST_F(DeviceTypeTest, ProgramsShowIt) {
  const std::string folder = testing::TempDir() + "device_type_" + std::to_string(getpid());
  const std::string graph = folder + ".pbtxt";
  std::ofstream(graph) << "node { name: 'n' op: 'WhereAmI' device: '/device:TWIN:1' }";
  const auto run = [&](const std::string& arguments) {
    const std::string command = std::string(TROUPE_PROGRAM) + " run " + graph +
                                " --library " TROUPE_EXTENSION_FOLDER "/twin.so --fetch n " +
                                arguments + " 2>&1";
    const auto ran = RunProgram({.arguments = {"/bin/sh", "-c", command}, .output = true});
    EXPECT_TRUE(ran.ok()) << ran.status();
    return StrCat(ran->status.code.value_or(-1), ": ", ran->output);
  };
  EXPECT_EQ(run("--device TWIN=2"),
            "0: n string [] \"/job:localhost/replica:0/task:0/device:TWIN:1\"\n");
  EXPECT_THAT(run("--device twin=2 --memory-limit TWIN=1000"), HasSubstr("0: n"));
  EXPECT_THAT(run("--device twin=2 --visible TWIN=3,1"), HasSubstr("0: n"));
  EXPECT_THAT(run("--device TWIN=2 --visible TWIN=3,4"),
              HasSubstr("1: INVALID_ARGUMENT: there is no TWIN device number 4"));
  EXPECT_THAT(run("--device TWIN=2 --memory-fraction TWIN=2"), HasSubstr("up to 1"));
  EXPECT_THAT(run("--device TWIN=2 --memory-limit TWIN=9 --reserve-memory twin"),
              HasSubstr("has no memory of its own"));
  EXPECT_THAT(run("--device TWIN=9"), HasSubstr("1: INVALID_ARGUMENT: asked for 9 devices"));
  EXPECT_THAT(run("--device GNU=1"), HasSubstr("1: INVALID_ARGUMENT: there is no device type GNU"));
  for (const char* wrong :
       {"--device TWIN", "--device =1", "--device TWIN=", "--device TWIN=-1", "--device TWIN=x",
        "--device TWIN=1 --device twin=2", "--memory-limit TWIN=1",
        "--device TWIN=1 --memory-limit TWIN=99999999999999999999", "--visible TWIN=1",
        "--device TWIN=1 --visible TWIN",
        "--device TWIN=1 --visible TWIN=", "--device TWIN=1 --visible TWIN=1,",
        "--device TWIN=1 --visible TWIN=-1", "--device TWIN=1 --memory-fraction TWIN=x",
        "--device TWIN=1 --reserve-memory SIM", "--device TWIN=1 --master troupe://127.0.0.1:1"}) {
    EXPECT_THAT(run(wrong), testing::StartsWith("2: ")) << wrong;
  }
  std::remove(graph.c_str());
}

}  // namespace
}  // namespace troupe
