// Convolutions are planned by cuDNN itself, for a card that is not there: descriptors are as it
// takes them, and for all that our kernels ask for there is a way.
#include "kernels/cuda/conv_plan.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

namespace troupe::cuda {
namespace {

/// An H100, as cuDNN writes down what it needs to know of a card.
constexpr std::string_view kH100 =
    R"({"deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 13000,
        "cudartVer": 13000, "cudaDeviceId": 0, "multiProcessorCount": 132, "warpSize": 32,
        "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
        "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
        "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
        "l2CacheSize": 52428800, "totalGlobalMem": 85000000000, "smClockRateKHz": 1980000,
        "memClockRateKHz": 2619000, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1})";

class ConvPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<const Cudnn*> cudnn = Cudnn::Get();
    // What these tests ask is cuDNN itself, which machines without the toolkit lack.
    if (!cudnn.ok()) GTEST_SKIP() << cudnn.status();
    cudnn_ = *cudnn;
  }

  absl::StatusOr<std::vector<ConvPlan>> Plans(const ConvProblem& problem, size_t most) {
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor card,
                            CudnnDescriptor::Make(*cudnn_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
    card.Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
             absl::Span<const char>(kH100.data(), kH100.size()));
    TROUPE_RETURN_IF_ERROR(card.Finalize());
    return ConvPlan::Make(*cudnn_, {.properties = &card}, problem, most);
  }
  absl::StatusOr<ConvPlan> Plan(const ConvProblem& problem) {
    TROUPE_ASSIGN_OR_RETURN(std::vector<ConvPlan> plans, Plans(problem, 1));
    return std::move(plans.front());
  }

  const Cudnn* cudnn_ = nullptr;
};

ConvShape Images(int64_t batch, int64_t size, int64_t in_depth, int64_t out_depth, Window window,
                 int64_t groups = 1) {
  window.input = size;
  window.output =
      (size + window.pad_before + window.pad_after - window.effective_size()) / window.stride + 1;
  return {.batch = batch,
          .in_depth = in_depth,
          .out_depth = out_depth,
          .groups = groups,
          .rows = window,
          .columns = window};
}

TEST(MakePaddingEven, AddsWhatIsMissing) {
  struct Case {
    const char* name;
    Window window;
    Border border;
    int64_t padding;
  };
  const Case kCases[] = {
      {"even", {.input = 7, .output = 7, .size = 3, .pad_before = 1, .pad_after = 1}, {}, 1},
      {"SAME, stride 2",
       {.input = 224, .output = 112, .size = 7, .stride = 2, .pad_before = 2, .pad_after = 3},
       {0, 1},
       2},
      {"before alone", {.input = 5, .output = 5, .size = 3, .pad_before = 2}, {2, 0}, 0},
      {"no window meets the end",
       {.input = 6, .output = 3, .size = 3, .stride = 2, .pad_before = 1},
       {},
       1},
      {"nor what is after it",
       {.input = 6, .output = 2, .size = 3, .stride = 3, .pad_after = 1},
       {},
       0},
      {"dilated",
       {.input = 9, .output = 9, .size = 2, .dilation = 3, .pad_before = 1, .pad_after = 2},
       {0, 1},
       1},
      {"wider than the input", {.input = 1, .output = 1, .size = 4, .pad_after = 3}, {0, 3}, 0},
  };
  for (const Case& c : kCases) {
    Window window = c.window;
    EXPECT_EQ(MakePaddingEven(&window), c.border) << c.name;
    EXPECT_EQ(window.input, c.window.input + c.border.before + c.border.after) << c.name;
    EXPECT_EQ(window.pad_before, c.padding) << c.name;
    EXPECT_EQ(window.pad_after, c.padding) << c.name;
    EXPECT_EQ((window.input + 2 * c.padding - window.effective_size()) / window.stride + 1,
              c.window.output)
        << c.name;
  }
}

TEST_F(ConvPlanTest, ThereIsAPlanForAllThatKernelsAskFor) {
  const std::pair<const char*, ConvShape> kShapes[] = {
      {"plain", Images(8, 28, 64, 64, {.size = 3, .pad_before = 1, .pad_after = 1})},
      {"padded behind", Images(8, 28, 64, 64, {.size = 3, .stride = 2, .pad_after = 1})},
      {"padded before", Images(8, 28, 64, 64, {.size = 3, .pad_before = 2})},
      {"padded by the window", Images(2, 9, 8, 8, {.size = 3, .pad_before = 3, .pad_after = 4})},
      {"dilated",
       Images(8, 28, 64, 64, {.size = 3, .dilation = 2, .pad_before = 2, .pad_after = 2})},
      {"dilated steps", Images(8, 28, 64, 64, {.size = 3, .stride = 2, .dilation = 2})},
      {"groups", Images(8, 28, 64, 64, {.size = 3, .pad_before = 1, .pad_after = 1}, 4)},
      {"each channel alone",
       Images(8, 28, 64, 64, {.size = 3, .pad_before = 1, .pad_after = 1}, 64)},
      {"steps over the window", Images(2, 29, 16, 16, {.size = 2, .stride = 5})},
      {"few channels",
       Images(8, 224, 3, 64, {.size = 7, .stride = 2, .pad_before = 3, .pad_after = 3})},
      {"odd", Images(1, 5, 1, 5, {.size = 2})},
      {"one pixel", Images(1, 1, 3, 5, {.size = 1})},
      {"large", Images(64, 56, 256, 256, {.size = 3, .pad_before = 1, .pad_after = 1})},
  };
  for (const ElementType type :
       {ElementType::kHalf, ElementType::kBfloat16, ElementType::kFloat, ElementType::kDouble}) {
    for (const ConvOp op : {ConvOp::kForward, ConvOp::kBackwardInput, ConvOp::kBackwardFilter}) {
      for (auto [name, shape] : kShapes) {
        for (const bool nchw : {false, true}) {
          for (const bool tf32 : {false, true}) {
            shape.channels_first = nchw;
            const absl::StatusOr<ConvPlan> plan = Plan({op, type, shape, tf32, int64_t{1} << 30});
            EXPECT_TRUE(plan.ok())
                << name << ", " << ElementTypeName(type) << ", gradient " << static_cast<int>(op)
                << (nchw ? ", NCHW: " : ", NHWC: ") << plan.status();
            if (!plan.ok()) continue;
            EXPECT_LE(plan->workspace(), int64_t{1} << 30) << name;
          }
        }
      }
    }
  }
}

TEST_F(ConvPlanTest, LittleWorkspaceIsAsked) {
  const ConvShape shape = Images(64, 56, 256, 256, {.size = 3, .pad_before = 1, .pad_after = 1});
  const absl::StatusOr<ConvPlan> roomy =
      Plan({ConvOp::kForward, ElementType::kFloat, shape, false, int64_t{1} << 40});
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  ASSERT_GT(roomy->workspace(), 1 << 20);
  const absl::StatusOr<ConvPlan> tight =
      Plan({ConvOp::kForward, ElementType::kFloat, shape, false, 1 << 20});
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_LE(tight->workspace(), 1 << 20);
}

TEST_F(ConvPlanTest, ThereAreSeveralToChooseFrom) {
  const ConvShape shape = Images(32, 56, 64, 64, {.size = 3, .pad_before = 1, .pad_after = 1});
  const ConvProblem problem{ConvOp::kForward, ElementType::kFloat, shape, false, 1 << 28};
  const absl::StatusOr<std::vector<ConvPlan>> plans = Plans(problem, 8);
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_GT(plans->size(), 1u);
  EXPECT_LE(plans->size(), 8u);
  for (const ConvPlan& plan : *plans) EXPECT_LE(plan.workspace(), 1 << 28);
}

TEST_F(ConvPlanTest, WhatCudnnRefusesIsAnError) {
  ConvShape shape = Images(8, 28, 64, 64, {.size = 3});
  shape.rows.output += 1;
  const absl::Status status =
      Plan({ConvOp::kForward, ElementType::kFloat, shape, false, 1 << 20}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("preparing a convolution"), std::string::npos) << status;
}

}  // namespace
}  // namespace troupe::cuda
