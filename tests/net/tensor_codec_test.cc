// Tensor lists and optionals between processes.

#include <gtest/gtest.h>

#include <random>

#include "kernels/control/optional.h"
#include "kernels/data/tensor_list.h"
#include "net/tensor_codec.h"
#include "tests/net/tensors.h"

namespace troupe {
namespace {

Tensor Holding(RefPtr<VariantValue> value) {
  return *MakeVariantTensor(std::move(value), HostAllocator());
}

Tensor NestedList(int levels) {
  auto list = MakeRef<TensorList>(ElementType::kFloat, PartialShape({-1, 2}), 100);
  list->Resize(7);
  EXPECT_TRUE(list->Set(1, Tensor::Uninitialized(ElementType::kFloat, Shape({3, 2}))).ok());
  EXPECT_TRUE(list->Set(3, Tensor::Uninitialized(ElementType::kFloat, Shape({0, 2}))).ok());
  if (levels == 0) return Holding(std::move(list));
  auto outer = MakeRef<TensorList>(ElementType::kVariant, PartialShape(std::vector<int64_t>()));
  EXPECT_TRUE(outer->Push(NestedList(levels - 1)).ok());
  EXPECT_TRUE(outer->Push(Holding(std::move(list))).ok());
  return Holding(std::move(outer));
}

absl::StatusOr<Tensor> RoundTrip(const Tensor& tensor) {
  std::string bytes;
  const absl::Status status = EncodeElements(tensor, &bytes);
  if (!status.ok()) return status;
  return DecodeElements(tensor.type(), tensor.shape(), bytes);
}

TEST(TensorCodec, TensorLists) {
  const Tensor original = NestedList(0);
  const auto copy = RoundTrip(original);
  ASSERT_TRUE(copy.ok()) << copy.status();
  const TensorList& a = **ListIn(original);
  const TensorList& b = **ListIn(*copy);
  EXPECT_EQ(b.type(), a.type());
  EXPECT_EQ(b.element_shape(), a.element_shape());
  EXPECT_EQ(b.max_size(), 100);
  EXPECT_EQ(b.size(), 7);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(a.at(i).valid(), b.at(i).valid()) << i;
    if (a.at(i).valid()) {
      EXPECT_TRUE(SameTensor(a.at(i), b.at(i))) << i;
    }
  }
}

TEST(TensorCodec, NestedLists) {
  const auto copy = RoundTrip(NestedList(10));
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ((*ListIn(*copy))->size(), 2);
  EXPECT_FALSE(RoundTrip(NestedList(100)).ok());
}

TEST(TensorCodec, Optionals) {
  auto none = MakeRef<Optional>();
  const auto no_value = RoundTrip(Holding(none));
  ASSERT_TRUE(no_value.ok()) << no_value.status();
  EXPECT_FALSE(
      static_cast<const Optional*>(ValueOf(no_value->unchecked_scalar<Variant>()))->has_value());
  for (const size_t count : {size_t{0}, size_t{3}}) {
    auto some = MakeRef<Optional>();
    std::vector<Tensor> components(count, Tensor::Vector<std::string>({"a", "b"}));
    ASSERT_TRUE(some->Set(components).ok());
    const auto copy = RoundTrip(Holding(some));
    ASSERT_TRUE(copy.ok()) << copy.status();
    const auto* got = static_cast<const Optional*>(ValueOf(copy->unchecked_scalar<Variant>()));
    EXPECT_TRUE(got->has_value());
    ASSERT_EQ(got->components().size(), count);
    for (const Tensor& component : got->components()) {
      EXPECT_TRUE(SameTensor(component, components[0]));
    }
  }
}

TEST(TensorCodec, DamageIsRefusedOrHarmless) {
  std::string bytes;
  ASSERT_TRUE(EncodeElements(NestedList(3), &bytes).ok());
  std::mt19937 random(1);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeElements(ElementType::kVariant, Shape(), bytes.substr(0, size)).ok());
  }
  for (int i = 0; i < 5000; ++i) {
    std::string bad = bytes;
    for (int flips = 0; flips < 3; ++flips) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    (void)DecodeElements(ElementType::kVariant, Shape(), bad);
  }
}

}  // namespace
}  // namespace troupe
