#include "devices/tensor.h"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "devices/resource_handle.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Tensor, ScalarsVectorsValues) {
  const Tensor scalar = Tensor::Scalar(2.5f);
  EXPECT_EQ(scalar.type(), ElementType::kFloat);
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.unchecked_scalar<float>(), 2.5f);
  const Tensor matrix = Tensor::FromValues<int32_t>({1, 2, 3, 4, 5, 6}, Shape({2, 3})).value();
  EXPECT_EQ(matrix.bytes(), 24u);
  EXPECT_EQ(matrix.unchecked_values<int32_t>()[5], 6);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.raw_data()) % 64, 0u);
  const Tensor flags = Tensor::Vector<bool>({true, false});
  EXPECT_TRUE(flags.unchecked_values<bool>()[0]);
  EXPECT_FALSE(Tensor().valid());
}

TEST(Tensor, SharingAndOwnership) {
  Tensor a = Tensor::Vector<int64_t>({1, 2, 3});
  EXPECT_TRUE(a.unique());
  {
    const Tensor b = a;
    EXPECT_FALSE(a.unique());
    EXPECT_TRUE(a.SharesBufferWith(b));
  }
  EXPECT_TRUE(a.unique());
  const Tensor c = *a.Clone();
  EXPECT_FALSE(a.SharesBufferWith(c));
  EXPECT_EQ(c.unchecked_values<int64_t>()[2], 3);
  EXPECT_TRUE(a.unique());
}

TEST(Tensor, SlicesAndReshapesShareMemory) {
  Tensor a = Tensor::FromValues<int32_t>({1, 2, 3, 4, 5, 6}, Shape({3, 2})).value();
  const Tensor rows = a.Slice(1, 3);
  EXPECT_EQ(rows.shape(), Shape({2, 2}));
  EXPECT_EQ(rows.unchecked_data<int32_t>(), a.unchecked_data<int32_t>() + 2);
  EXPECT_EQ(rows.Slice(1, 2).unchecked_values<int32_t>()[0], 5);
  EXPECT_EQ(a.Slice(3, 3).num_elements(), 0);
  EXPECT_EQ(a.Reshaped(Shape({6})).unchecked_values<int32_t>()[4], 5);
  EXPECT_TRUE(a.SharesBufferWith(rows));
  const Tensor empty = Tensor::Uninitialized(ElementType::kFloat, Shape({0, 3}));
  EXPECT_EQ(empty.Slice(0, 0).shape(), Shape({0, 3}));
}

TEST(Tensor, StringsResourcesVariants) {
  const std::string long_text(1000, 'x');
  Tensor strings = Tensor::Vector<std::string>({"a", long_text});
  EXPECT_EQ(strings.Clone()->unchecked_values<std::string>()[1], long_text);
  EXPECT_EQ(Tensor::Scalar("hi").unchecked_scalar<std::string>(), "hi");
  const Tensor blank = *Tensor::Allocate(ElementType::kString, Shape({100}));
  EXPECT_TRUE(blank.unchecked_values<std::string>()[99].empty());

  struct Thing : Resource {
    explicit Thing(bool* gone) : gone(gone) {}
    ~Thing() override { *gone = true; }
    std::string DebugString() const override { return "thing"; }
    bool* gone;
  };
  bool gone = false;
  {
    ResourceHandle handle;
    handle.name = "t";
    handle.resource = MakeRef<Thing>(&gone);
    Tensor tensor = Tensor::Scalar(handle);
    handle = ResourceHandle();
    Tensor copy = *tensor.Clone();
    tensor = Tensor();
    EXPECT_FALSE(gone);
  }
  EXPECT_TRUE(gone);

  Tensor variant = Tensor::Scalar(Variant(std::string("inside")));
  EXPECT_EQ(*variant.Clone()->unchecked_scalar<Variant>().get<std::string>(), "inside");
  EXPECT_EQ(variant.unchecked_scalar<Variant>().get<int>(), nullptr);
}

TEST(Tensor, ZeroElements) {
  for (ElementType type : {ElementType::kFloat, ElementType::kString, ElementType::kVariant}) {
    const Tensor tensor = *Tensor::Allocate(type, Shape({2, 0, 3}));
    EXPECT_EQ(tensor.num_elements(), 0);
    EXPECT_EQ(tensor.bytes(), 0u);
    EXPECT_TRUE(tensor.Clone().ok());
    EXPECT_TRUE(tensor.unique());
  }
}

TEST(Tensor, RefusesWhatCannotBe) {
  EXPECT_EQ(Tensor::Allocate(ElementType::kDouble, Shape({int64_t{1} << 61})).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Tensor::Allocate(ElementType::kFloat, Shape({int64_t{1} << 46})).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Tensor::Allocate(ElementType::kInt2, Shape({1})).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Tensor::Allocate(ElementType::kInvalid, Shape()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Tensor, WrapsForeignMemory) {
  int released = 0;
  float values[4] = {1, 2, 3, 4};
  {
    Tensor tensor(
        ElementType::kFloat, Shape({4}),
        Buffer::Wrap(
            values, sizeof(values), [](void*, void* n) { ++*static_cast<int*>(n); }, &released),
        values);
    const Tensor other = tensor.Slice(1, 2);
    tensor = Tensor();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(other.unchecked_scalar<float>(), 2);
  }
  EXPECT_EQ(released, 1);
}

TEST(Tensor, DiesOnAnotherThread) {
  const int64_t before = HostAllocator()->stats().bytes_in_use;
  for (int i = 0; i < 50; ++i) {
    std::thread([t = Tensor::Vector<std::string>({"some string that is not short at all", "b"})] {
      EXPECT_EQ(t.num_elements(), 2);
    }).join();
  }
  EXPECT_EQ(HostAllocator()->stats().bytes_in_use, before);
}

TEST(Tensor, Text) {
  EXPECT_EQ(Tensor::FromValues<float>({1, 2, 3, 4.5}, Shape({2, 2})).value().ToString(),
            "float[2,2] [[1 2][3 4.5]]");
  EXPECT_EQ(Tensor::Scalar(true).ToString(), "bool[] 1");
  EXPECT_EQ(Tensor::Vector<int8_t>({-1, 7}).ToString(), "int8[2] [-1 7]");
  EXPECT_EQ(Tensor::Vector<int32_t>({1, 2, 3, 4}).ToString(2), "int32[4] [1 2 ...]");
  EXPECT_EQ(Tensor::FromValues<int32_t>({1, 2, 3, 4}, Shape({2, 2})).value().ToString(2),
            "int32[2,2] [[1 2]...]");
  EXPECT_EQ(Tensor::Scalar("a\n\"").ToString(), "string[] \"a\\n\\\"\"");
  EXPECT_EQ(Tensor::Scalar(complex64(1, -2)).ToString(), "complex64[] (1,-2)");
  EXPECT_EQ(Tensor::Scalar(half(0.5f)).ToString(), "half[] 0.5");
  EXPECT_EQ(Tensor::Uninitialized(ElementType::kInt32, Shape({0})).ToString(), "int32[0] []");
  EXPECT_EQ(Tensor().ToString(), "<no tensor>");
}

}  // namespace
}  // namespace troupe
