#include "devices/device_name.h"

#include <string>

#include "devices/cpu/compute_pool.h"
#include "devices/cpu/cpu_device.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

DeviceName Parsed(std::string_view text) {
  absl::StatusOr<DeviceName> name = DeviceName::Parse(text);
  EXPECT_TRUE(name.ok()) << name.status();
  return name.ok() ? *name : DeviceName();
}

TEST(DeviceName, ParsesTensorFlowsForms) {
  const struct {
    const char *text, *canonical;
  } kCases[] = {
      {"", ""},
      {"/", ""},
      {"/job:worker/replica:1/task:2/device:GPU:3", "/job:worker/replica:1/task:2/device:GPU:3"},
      {"/job:a-b_c", "/job:a-b_c"},
      {"job:worker/task:0", "/job:worker/task:0"},
      {"/task:2/job:ps", "/job:ps/task:2"},
      {"/cpu:0", "/device:CPU:0"},
      {"/GPU:*", "/device:GPU:*"},
      {"cpu:1", "/device:CPU:1"},
      {"CPU:1", "/device:CPU:1"},
      {"Tpu:7", "/device:TPU:7"},
      {"/device:cpu:0", "/device:CPU:0"},
      {"/device:GPU", "/device:GPU:*"},
      {"/device:*", ""},
      {"/device:*:4", "/device:*:4"},
      {"/job:*/replica:*/task:*/device:CPU:*", "/device:CPU:*"},
      {"/job:a/job:b", "/job:b"},
  };
  for (const auto& c : kCases) EXPECT_EQ(Parsed(c.text).ToString(), c.canonical) << c.text;
}

TEST(DeviceName, RefusesTheRest) {
  for (const char* text :
       {"nothing", "/jab:x", "/job:", "/job:1a", "/replica:", "/replica:x", "/replica:-1",
        "/task:99999999999", "/device:", "/device:CPU:", "/device:CPU:x", "/cpu:", "/cpu",
        "//cpu:0", "/job:a /task:0", "/device:CPU:0/", "/job:a/", " ", "/device:CPU:2147483648"}) {
    const auto name = DeviceName::Parse(text);
    EXPECT_EQ(name.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(name.status().message().find(text), absl::string_view::npos) << name.status();
  }
}

TEST(DeviceName, Matches) {
  const DeviceName full = Parsed("/job:w/replica:0/task:1/device:CPU:0");
  EXPECT_TRUE(full.complete());
  EXPECT_TRUE(full.Matches(Parsed("")));
  EXPECT_TRUE(full.Matches(Parsed("/job:w/device:CPU:*")));
  EXPECT_FALSE(full.Matches(Parsed("/job:w/device:CPU:1")));
  EXPECT_FALSE(Parsed("/job:w").Matches(full));
}

TEST(DeviceName, Merge) {
  const struct {
    const char *a, *b;
    bool soft;
    const char* merged;  // nullptr: an error
  } kCases[] = {
      {"/job:w", "/task:1", false, "/job:w/task:1"},
      {"/job:w", "/job:v", false, nullptr},
      {"/job:w", "/job:v", true, nullptr},
      {"/task:1", "/task:2", true, nullptr},
      {"/replica:1", "/replica:2", true, nullptr},
      {"/cpu:0", "/gpu:0", false, nullptr},
      {"/job:w/cpu:0", "/gpu:0", true, "/job:w"},
      {"/cpu:0", "/cpu:1", false, nullptr},
      {"/cpu:0", "/cpu:1", true, "/device:CPU:*"},
      {"/device:CPU:*", "/cpu:1", false, "/device:CPU:1"},
  };
  for (const auto& c : kCases) {
    DeviceName name = Parsed(c.a);
    const absl::Status status = name.MergeFrom(Parsed(c.b), c.soft);
    EXPECT_EQ(status.ok(), c.merged != nullptr) << c.a << c.b << status;
    EXPECT_EQ(name.ToString(), c.merged ? c.merged : Parsed(c.a).ToString()) << c.a << c.b;
  }
}

TEST(DeviceName, Override) {
  EXPECT_EQ(DeviceName::Override(Parsed("/job:w/cpu:0"), Parsed("/gpu:1")).ToString(),
            "/job:w/device:GPU:1");
  EXPECT_EQ(DeviceName::Override(Parsed("/job:w"), Parsed("")).ToString(), "/job:w");
}

TEST(CpuDevice, IsADeviceWhoseStreamIsDone) {
  auto pool = std::make_shared<ComputePool>(1);
  const auto device = MakeCpuDevice(Parsed("/job:j/replica:0/task:0/cpu:1"), pool);
  EXPECT_EQ(device->name(), "/job:j/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(device->type(), "CPU");
  EXPECT_EQ(device->parsed_name(), Parsed(device->name()));
  EXPECT_NE(device->attributes().incarnation, 0u);
  EXPECT_EQ(device->compute_pool(), pool.get());
  EXPECT_TRUE(device->stream()->Done());
  bool done = false;
  device->stream()->WhenDone([&](absl::Status s) { done = s.ok(); });
  EXPECT_TRUE(done);
  const Tensor tensor = Tensor::Vector<int>({1, 2});
  EXPECT_TRUE(Upload(device.get(), tensor)->SharesBufferWith(tensor));
  done = false;
  Download(device.get(), tensor, [&](absl::StatusOr<Tensor> copy) {
    EXPECT_TRUE(copy->SharesBufferWith(tensor));
    done = true;
  });
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace troupe
