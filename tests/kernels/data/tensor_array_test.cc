#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kernels/data/tensor_array.h"
#include "tests/kernels/data/step_runner.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using ::testing::HasSubstr;
using testing::StepRunner;
using enum ElementType;

/// What kernels of the CPU pass on.
const ElementMemory& OnHost() {
  static StepContext step{.allocator = HostAllocator()};
  static KernelContext ctx(&step, nullptr, nullptr, 0, nullptr, 0, /*forwardable=*/0);
  static ElementKernels kernels;
  static const ElementMemory memory(&ctx, &kernels);
  return memory;
}

Tensor Row(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

RefPtr<TensorArrayResource> Array(int64_t size, TensorArrayResource::Options options = {}) {
  options.name = "array";
  options.type = kFloat;
  return MakeRef<TensorArrayResource>(std::move(options), size);
}

void ExpectInvalid(const absl::Status& status, const char* message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(TensorArrayTest, ElementsAreWrittenOnceAndReadOnce) {
  auto array = Array(2);
  ASSERT_TRUE(array->Write(1, Row({1, 2}), OnHost()).ok());
  ExpectInvalid(array->Write(1, Row({1, 2}), OnHost()), "already been written");
  ExpectInvalid(array->Write(2, Row({1}), OnHost()), "not resizeable");
  ExpectInvalid(array->Write(-1, Row({1}), OnHost()), "index -1");
  ExpectInvalid(array->Write(0, Tensor::Scalar(1.0), OnHost()), "dtype");
  ExpectEqual(*array->Read(1, OnHost()), Row({1, 2}));
  ExpectInvalid(array->Read(1, OnHost()).status(), "clear_after_read");
  ExpectInvalid(array->Write(1, Row({1}), OnHost()), "already been read");
  ExpectInvalid(array->Read(0, OnHost()).status(), "not written");
  ExpectInvalid(array->Read(2, OnHost()).status(), "size is: 2");
  array->Close();
  ExpectInvalid(array->Read(0, OnHost()).status(), "closed");
  ExpectInvalid(array->Size().status(), "closed");
  ExpectInvalid(array->Gradient("g", {}).status(), "closed");
}

TEST(TensorArrayTest, GrowsIfDynamic) {
  TensorArrayResource::Options options;
  options.dynamic_size = true;
  options.identical_element_shapes = true;
  auto array = Array(0, options);
  ASSERT_TRUE(array->Write(3, Row({1, 2}), OnHost()).ok());
  EXPECT_EQ(*array->Size(), 4);
  ExpectEqual(*array->Read(0, OnHost()), Row({0, 0}));
  ExpectInvalid(array->Write(4, Row({1}), OnHost()), "inferred element shape");
  EXPECT_EQ(array->Write(int64_t{1} << 40, Row({1, 2}), OnHost()).code(),
            absl::StatusCode::kResourceExhausted);
  // Once there are gradients the size is settled.
  ASSERT_TRUE(array->Gradient("g", {}).ok());
  ExpectInvalid(array->Write(4, Row({1, 2}), OnHost()), "not resizeable");
}

TEST(TensorArrayTest, GradientsAddUp) {
  auto array = Array(3);
  ASSERT_TRUE(array->Write(0, Row({1, 2}), OnHost()).ok());
  ASSERT_TRUE(array->Write(1, Row({3}), OnHost()).ok());
  auto gradient = *array->Gradient("gradients", {});
  EXPECT_EQ(gradient.get(), array->Gradient("gradients", {})->get());
  EXPECT_NE(gradient.get(), array->Gradient("gradients_1", {})->get());
  const Tensor first = Row({1, 1});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(gradient->Write(0, first, OnHost()).ok());
  ExpectInvalid(gradient->Write(0, Row({1}), OnHost()), "existing shape");
  ExpectEqual(first, Row({1, 1}));
  // Second derivatives: the sum's gradient is that of every addend.
  auto second = *gradient->Gradient("gradients_2", {});
  ExpectEqual(*second->Read(0, OnHost()), Row({0, 0}));
  ExpectEqual(*second->Read(0, OnHost()), Row({0, 0}));
  ExpectEqual(*gradient->Read(0, OnHost()), Row({3, 3}));
  ExpectEqual(*gradient->Read(1, OnHost()), Row({0}));  // Its shape is the element's.
  ExpectInvalid(gradient->Read(2, OnHost()).status(), "not written");
  auto batch = *array->Gradient("with shape", {4});
  EXPECT_EQ(batch->Read(0, OnHost())->shape(), Shape({4, 2}));
}

TEST(TensorArrayTest, ManyThreads) {
  TensorArrayResource::Options options;
  options.aggregate = true;
  options.clear_after_read = false;
  options.dynamic_size = true;
  auto array = Array(0, options);
  constexpr int kThreads = 4, kIndices = 500;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kIndices; ++i) {
        if (!array->Write(i, Row({1, static_cast<float>(i)}), OnHost()).ok()) ++failures;
        if (!array->Size().ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (int i = 0; i < kIndices; ++i) {
    ExpectEqual(*array->Read(i, OnHost()), Row({4, 4.0f * static_cast<float>(i)}));
  }
}

TEST(TensorArrayTest, LongChainsOfHandlesAreReleased) {
  TensorArrayResource::Options options;
  options.name = "chain";
  options.type = kResource;
  RefPtr<TensorArrayResource> last;
  for (int i = 0; i < 200'000; ++i) {
    auto array = MakeRef<TensorArrayResource>(options, 1);
    if (last) {
      ResourceHandle handle;
      handle.resource = std::move(last);
      ASSERT_TRUE(array->Write(0, Tensor::Scalar(std::move(handle)), OnHost()).ok());
    }
    last = std::move(array);
  }
  last.reset();  // Must not run out of stack.
}

class TensorArrayOpsTest : public ::testing::TestWithParam<int> {
 protected:
  TensorArrayOpsTest() {
    step_.Attr("dtype", kFloat)
        .Attr("T", kFloat)
        .Attr("source", std::string("gradients"))
        .Attr("clear_after_read", false);
  }
  std::string Op(const char* name) const { return StrCat("TensorArray", name, "V", GetParam()); }
  ElementType HandleType() const { return GetParam() == 2 ? kString : kResource; }
  absl::StatusOr<Tensor> Make(int32_t size) {
    std::vector<ElementType> outputs = {HandleType()};
    if (GetParam() == 3) outputs.push_back(kFloat);
    auto made = step_.Run(Op(""), {Tensor::Scalar<int32_t>(size)}, outputs);
    if (!made.ok()) return made.status();
    return (*made)[0];
  }
  absl::StatusOr<Tensor> GradOf(const Tensor& handle) {
    std::vector<ElementType> outputs = {HandleType()};
    if (GetParam() == 3) outputs.push_back(kFloat);
    auto made = step_.Run(Op("Grad"), {handle, flow_}, outputs);
    if (!made.ok()) return made.status();
    return (*made)[0];
  }

  StepRunner step_;
  Tensor flow_ = Tensor::Scalar(0.0f);
};

TEST_P(TensorArrayOpsTest, WritesAndReads) {
  const Tensor handle = *Make(3);
  const Tensor one = Tensor::Scalar<int32_t>(1);
  auto flow = step_.One(Op("Write"), {handle, one, Row({1, 2}), flow_}, kFloat);
  ASSERT_TRUE(flow.ok()) << flow.status();
  EXPECT_EQ(flow->rank(), 0);
  ExpectEqual(*step_.One(Op("Read"), {handle, one, flow_}, kFloat), Row({1, 2}));
  ExpectEqual(*step_.One(Op("Size"), {handle, flow_}, kInt32), Tensor::Scalar<int32_t>(3));
  const Tensor gradient = *GradOf(handle);
  ExpectEqual(*step_.One(Op("Read"), {gradient, one, flow_}, kFloat), Row({0, 0}));
  ExpectInvalid(step_.One(Op("Read"), {handle, Row({1}), flow_}, kFloat).status(), "scalar");
  step_.Attr("dtype", kInt32);
  ExpectInvalid(step_.One(Op("Read"), {handle, one, flow_}, kInt32).status(), "dtype");
  ExpectInvalid(Make(-1).status(), ">= 0");
  ASSERT_TRUE(step_.Run(Op("Close"), {handle}, {}).ok());
  ExpectInvalid(step_.One(Op("Size"), {handle, flow_}, kInt32).status(), "closed");
}

TEST_P(TensorArrayOpsTest, WholeTensors) {
  const Tensor handle = *Make(3);
  const Tensor x = testing::MakeTensor(kFloat, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor backwards = Tensor::Vector<int32_t>({2, 1, 0});
  ASSERT_TRUE(step_.One(Op("Scatter"), {handle, backwards, x, flow_}, kFloat).ok());
  ExpectEqual(*step_.One(Op("Gather"), {handle, Tensor::Vector<int32_t>({0, 2}), flow_}, kFloat),
              testing::MakeTensor(kFloat, {2, 2}, {5, 6, 1, 2}));
  auto joined = step_.Run(Op("Concat"), {handle, flow_}, {kFloat, kInt64});
  ASSERT_TRUE(joined.ok());
  ExpectEqual((*joined)[0], Row({5, 6, 3, 4, 1, 2}));
  ExpectEqual((*joined)[1], Tensor::Vector<int64_t>({2, 2, 2}));
  const Tensor split = *Make(2);
  auto lengths = [](int64_t a, int64_t b) { return Tensor::Vector<int64_t>({a, b}); };
  for (const Tensor& bad : {lengths(1, 1), lengths(-1, 4), lengths(1, INT64_MAX), lengths(4, -1),
                            Tensor::Vector<int64_t>({3}), Tensor::Scalar<int64_t>(3)}) {
    EXPECT_EQ(step_.One(Op("Split"), {split, x, bad, flow_}, kFloat).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  ASSERT_TRUE(step_.One(Op("Split"), {split, x, lengths(0, 3), flow_}, kFloat).ok());
  ExpectEqual(*step_.One(Op("Read"), {split, Tensor::Scalar<int32_t>(1), flow_}, kFloat), x);

  const Tensor other = *Make(2);
  for (const Tensor& bad : {Tensor::Vector<int32_t>({0, 1, 2}), Tensor::Vector<int32_t>({0, -1, 1}),
                            Tensor::Vector<int32_t>({0, 1}), Tensor::Scalar<int32_t>(0)}) {
    EXPECT_EQ(step_.One(Op("Scatter"), {other, bad, x, flow_}, kFloat).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  // Of nothing, and of unknown shape.
  EXPECT_EQ(
      step_.One(Op("Gather"), {other, Tensor::Vector<int32_t>({}), flow_}, kFloat).status().code(),
      absl::StatusCode::kUnimplemented);
  EXPECT_EQ(step_.Run(Op("Concat"), {*Make(0), flow_}, {kFloat, kInt64}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_P(TensorArrayOpsTest, RefusesForeignHandles) {
  for (const Tensor& bad :
       GetParam() == 2
           ? std::vector<Tensor>{Tensor::Vector<std::string>({"_tensor_arrays", "none"}),
                                 Tensor::Scalar<std::string>("x")}
           : std::vector<Tensor>{Tensor::Scalar(ResourceHandle()),
                                 Tensor::Uninitialized(kResource, {2})}) {
    EXPECT_FALSE(step_.One(Op("Size"), {bad, flow_}, kInt32).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, TensorArrayOpsTest, ::testing::Values(2, 3));

}  // namespace
}  // namespace troupe
