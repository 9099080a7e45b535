// Updates and reads of variables on cards, with what golden cases are too small for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "api/troupe.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kCpu[] = "/device:CPU:0";
constexpr char kGpu[] = "/device:GPU:0";

/// Numbers from 1 to 100, whose sums in other orders have other last bits.
Tensor Numbers(ElementType type, const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor = *Tensor::Allocate(type, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const double value = 1 + static_cast<double>(random() % 990000) / 10000;
    switch (type) {
      case ElementType::kFloat:
        tensor.mutable_data<float>()[i] = static_cast<float>(value);
        break;
      case ElementType::kDouble:
        tensor.mutable_data<double>()[i] = value;
        break;
      case ElementType::kInt64:
        tensor.mutable_data<int64_t>()[i] = static_cast<int64_t>(value);
        break;
      case ElementType::kComplex64:
        tensor.mutable_data<complex64>()[i] = {static_cast<float>(value), static_cast<float>(i)};
        break;
      default:
        ADD_FAILURE() << "no numbers of type " << ElementTypeName(type);
    }
  }
  return tensor;
}

Tensor Indices(int64_t below, const Shape& shape) {
  std::mt19937 random(7);
  Tensor tensor = *Tensor::Allocate(ElementType::kInt64, shape);
  for (int64_t& value : tensor.mutable_values<int64_t>()) {
    value = static_cast<int64_t>(random() % static_cast<uint32_t>(below));
  }
  return tensor;
}

/// A graph with one variable, by reference or by handle, all on one device.
class VariableGraph {
 public:
  VariableGraph(const char* device, bool by_handle, const Tensor& start)
      : root_(Scope::NewRoot()),
        scope_(root_.WithDevice(device)),
        device_(device),
        by_handle_(by_handle) {
    const PartialShape shape(start.shape());
    if (by_handle) {
      variable_ = ops::VarHandleOp(scope_, start.type(), shape);
      init_ = ops::AssignVariableOp(scope_, variable_, start);
      value_ = ops::ReadVariableOp(scope_, variable_, start.type());
    } else {
      variable_ = ops::VariableV2(scope_, shape, start.type());
      init_ = ops::Assign(scope_, variable_, start).node;
      value_ = variable_;
    }
  }

  /// The prefix `Resource` is added for handles; the attribute of the type is that of the input.
  Node* Add(const std::string& op, const std::vector<Tensor>& inputs) {
    const bool assigns = op.starts_with("Assign");
    const std::string name = !by_handle_ ? op : assigns ? op + "VariableOp" : "Resource" + op;
    NodeSpec spec(name, scope_.graph()->UniqueName("culprit"));
    spec.Input(variable_).Device(device_);
    for (const Tensor& input : inputs) spec.Input(ops::Const(scope_, input));
    auto node = scope_.graph()->AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  }

  absl::Status Run(Node* target) {
    if (session_ == nullptr) {
      EXPECT_TRUE(root_.ok()) << root_.status();
      SessionOptions options;
      options.devices = {{"GPU", {.count = 1}}};
      auto session = Session::Create(scope_.graph(), options);
      if (!session.ok()) return session.status();
      session_ = *std::move(session);
      if (absl::Status status = session_->RunTargets({init_}); !status.ok()) return status;
    }
    return session_->RunTargets({target});
  }
  Tensor Value() {
    auto values = session_->Run({value_});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0] : Tensor();
  }

 private:
  Scope root_, scope_;
  std::string device_;
  bool by_handle_;
  Output variable_, value_;
  Node* init_ = nullptr;
  std::unique_ptr<Session> session_;
};

void ExpectSameUpdate(const std::string& op, bool by_handle, const Tensor& start,
                      const std::vector<Tensor>& inputs) {
  SCOPED_TRACE(op + (by_handle ? " by handle, " : " by reference, ") +
               ElementTypeName(start.type()) + " " + start.shape().ToString());
  Tensor after[2];
  for (const bool there : {false, true}) {
    VariableGraph graph(there ? kGpu : kCpu, by_handle, start);
    Node* const update = graph.Add(op, inputs);
    const absl::Status status = graph.Run(update);
    ASSERT_TRUE(status.ok()) << status;
    after[there] = graph.Value();
  }
  ASSERT_EQ(after[0].shape(), after[1].shape());
  EXPECT_EQ(std::memcmp(after[0].raw_data(), after[1].raw_data(), after[0].bytes()), 0)
      << after[0].ToString() << " and " << after[1].ToString();
}

/// On cards.
bool IsForComplex(std::string_view op) {
  return op.ends_with("Add") || op.ends_with("Sub") || op.ends_with("Update");
}

TEST(Variables, UpdatesHaveTheBitsOfTheCpu) {
  using enum ElementType;
  for (const ElementType type : {kFloat, kDouble, kInt64, kComplex64}) {
    for (const bool by_handle : {false, true}) {
      const Tensor start = Numbers(type, Shape({11, 3}), 1);
      for (const char* op : {"AssignAdd", "AssignSub"}) {
        ExpectSameUpdate(op, by_handle, start, {Numbers(type, Shape({11, 3}), 2)});
      }
      for (const char* op : {"ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin",
                             "ScatterMax", "ScatterUpdate"}) {
        if (type == kComplex64 && !IsForComplex(op)) continue;
        // Rows that name one slot look for one another.
        ExpectSameUpdate(op, by_handle, start,
                         {Indices(11, Shape({2, 10})), Numbers(type, Shape({2, 10, 3}), 2)});
        ExpectSameUpdate(op, by_handle, start,
                         {Indices(11, Shape({5})), Numbers(type, Shape({}), 2)});
      }
      for (const char* op : {"ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate"}) {
        ExpectSameUpdate(op, by_handle, start,
                         {Indices(3, Shape({20, 2})), Numbers(type, Shape({20}), 2)});
      }
    }
  }
}

TEST(Variables, SlicesAreReplaced) {
  using enum ElementType;
  const auto ints = [](const std::vector<int32_t>& values) {
    return Tensor::Vector<int32_t>(values);
  };
  for (const ElementType type : {kFloat, kDouble, kInt64, kComplex64}) {
    for (const bool by_handle : {false, true}) {
      const Tensor start = Numbers(type, Shape({11, 6}), 1);
      const auto replace = [&](const Tensor& begin, const Tensor& end, const Tensor& strides,
                               const Shape& shape) {
        ExpectSameUpdate("StridedSliceAssign", by_handle, start,
                         {begin, end, strides, Numbers(type, shape, 2)});
      };
      replace(ints({2, 1}), ints({9, 6}), ints({3, 2}), Shape({3, 3}));
      replace(ints({9, 0}), ints({2, 6}), ints({-3, 1}), Shape({3, 6}));
      replace(ints({4}), ints({6}), ints({1}), Shape({6}));  // One row for both.
      replace(ints({4}), ints({4}), ints({1}), Shape({0, 6}));
      replace(ints({0, 0}), ints({11, 6}), ints({1, 1}), Shape({}));
    }
  }
  VariableGraph graph(kGpu, /*by_handle=*/true, Numbers(kFloat, Shape({11, 6}), 1));
  EXPECT_TRUE(absl::IsInvalidArgument(
      graph.Run(graph.Add("StridedSliceAssign",
                          {ints({0}), ints({2}), ints({1}), Numbers(kFloat, Shape({3, 6}), 2)}))));
}

TEST(Variables, ManyRowsAreSorted) {
  for (const bool by_handle : {false, true}) {
    for (const char* op : {"ScatterAdd", "ScatterMul", "ScatterDiv", "ScatterMax"}) {
      ExpectSameUpdate(
          op, by_handle, Numbers(ElementType::kDouble, Shape({300, 2}), 1),
          {Indices(300, Shape({2000})), Numbers(ElementType::kDouble, Shape({2000, 2}), 2)});
    }
  }
}

TEST(Variables, NothingIsUpdated) {
  for (const bool by_handle : {false, true}) {
    const Tensor none = *Tensor::Allocate(ElementType::kInt64, Shape({0}));
    for (const char* op : {"ScatterAdd", "ScatterUpdate", "ScatterDiv"}) {
      ExpectSameUpdate(op, by_handle, Numbers(ElementType::kFloat, Shape({4, 3}), 1),
                       {none, Numbers(ElementType::kFloat, Shape({0, 3}), 2)});
      ExpectSameUpdate(op, by_handle, Numbers(ElementType::kFloat, Shape({4, 0}), 1),
                       {Indices(4, Shape({2})), Numbers(ElementType::kFloat, Shape({2, 0}), 2)});
    }
  }
}

TEST(Variables, ABadIndexIsTheNodesError) {
  Tensor indices = Indices(50, Shape({1000}));
  indices.mutable_data<int64_t>()[777] = 50;
  for (const bool by_handle : {false, true}) {
    for (const char* op : {"ScatterAdd", "ScatterUpdate"}) {
      VariableGraph graph(kGpu, by_handle, Numbers(ElementType::kFloat, Shape({50, 3}), 1));
      Node* const bad = graph.Add(op, {indices, Numbers(ElementType::kFloat, Shape({1000, 3}), 2)});
      const absl::Status status = graph.Run(bad);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("element 777 is 50, which is not in [0, 50)"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("culprit"));
      EXPECT_EQ(graph.Value().shape(), Shape({50, 3}));  // It is still there.
    }
  }
}

TEST(Variables, WhatMayBeDividedByZero) {
  const Tensor index = Tensor::Vector<int64_t>({1}), start = Tensor::Vector<float>({1, 2});
  const Tensor zero = Tensor::Vector<float>({0});
  VariableGraph reference(kGpu, /*by_handle=*/false, start);
  ASSERT_TRUE(reference.Run(reference.Add("ScatterDiv", {index, zero})).ok());
  EXPECT_THAT(reference.Value().unchecked_values<float>(),
              ElementsAre(1, std::numeric_limits<float>::infinity()));
  VariableGraph handle(kGpu, /*by_handle=*/true, start);
  const absl::Status status = handle.Run(handle.Add("ScatterDiv", {index, zero}));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("element 0 is zero"));
  VariableGraph integers(kGpu, /*by_handle=*/false, Tensor::Vector<int64_t>({1, 2}));
  EXPECT_TRUE(absl::IsInvalidArgument(
      handle.Run(handle.Add("ScatterDiv", {*Tensor::Allocate(ElementType::kInt64, Shape({0})),
                                           Tensor::Scalar<float>(0)}))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      integers.Run(integers.Add("ScatterDiv", {index, Tensor::Vector<int64_t>({0})}))));
}

/// Runs all on a device, in one session: `init` first.
absl::StatusOr<std::vector<Tensor>> RunOn(
    const char* device,
    const std::function<std::vector<Output>(const Scope& scope, std::vector<Node*>* init)>& build) {
  const Scope root = Scope::NewRoot();
  std::vector<Node*> init;
  const std::vector<Output> fetches = build(root.WithDevice(device), &init);
  EXPECT_TRUE(root.ok()) << root.status();
  SessionOptions options;
  options.devices = {{"GPU", {.count = 1}}};
  auto session = Session::Create(root.graph(), options);
  if (!session.ok()) return session.status();
  for (Node* node : init) {
    if (absl::Status status = (*session)->RunTargets({node}); !status.ok()) return status;
  }
  return (*session)->Run(fetches);
}

TEST(Variables, ReadersKeepTheOldValue) {
  const auto values = RunOn(kGpu, [](const Scope& s, std::vector<Node*>* init) {
    const Output v = ops::VarHandleOp(s, ElementType::kFloat, PartialShape({3}));
    init->push_back(ops::AssignVariableOp(s, v, Tensor::Vector<float>({1, 2, 3})));
    const Output old = ops::ReadVariableOp(s, v, ElementType::kFloat);
    const Scope after_read = s.WithControlDependencies({old.node});
    Node* const scatter = ops::ResourceScatterUpdate(after_read, v, Tensor::Vector<int32_t>({2, 0}),
                                                     Tensor::Vector<float>({30, 10}));
    const Scope after_scatter = s.WithControlDependencies({scatter});
    Node* const add =
        ops::AssignAddVariableOp(after_scatter, v, Tensor::Vector<float>({0.5f, 0.5f, 0.5f}));
    const Scope after = s.WithControlDependencies({add});
    return std::vector<Output>{ops::Neg(after, old),
                               ops::ReadVariableOp(after, v, ElementType::kFloat)};
  });
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].unchecked_values<float>(), ElementsAre(-1, -2, -3));
  EXPECT_THAT((*values)[1].unchecked_values<float>(), ElementsAre(10.5, 2.5, 30.5));
}

TEST(Variables, GathersHaveTheBytesOfTheCpu) {
  std::vector<std::vector<Tensor>> values;
  for (const char* device : {kCpu, kGpu}) {
    auto got = RunOn(device, [](const Scope& s, std::vector<Node*>* init) {
      const Output v = ops::VarHandleOp(s, ElementType::kDouble, PartialShape({6, 5, 4}));
      init->push_back(
          ops::AssignVariableOp(s, v, Numbers(ElementType::kDouble, Shape({6, 5, 4}), 1)));
      return std::vector<Output>{
          ops::ResourceGather(s, v, Indices(6, Shape({7, 2})), ElementType::kDouble),
          ops::ResourceGather(s, v, Indices(5, Shape({6, 3})), ElementType::kDouble,
                              {.batch_dims = 1}),
          ops::ResourceGatherNd(s, v, Indices(5, Shape({9, 2})), ElementType::kDouble)};
    });
    ASSERT_TRUE(got.ok()) << got.status();
    values.push_back(*std::move(got));
  }
  for (size_t i = 0; i < values[0].size(); ++i) {
    const Tensor &a = values[0][i], &b = values[1][i];
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0) << "gather " << i;
  }
}

TEST(Variables, TemporaryOnesBeginWithZeros) {
  const auto values = RunOn(kGpu, [](const Scope& s, std::vector<Node*>*) {
    std::vector<Output> results;
    for (const Scope& scope : {s, s.WithDevice(kCpu)}) {
      const Output v = ops::TemporaryVariable(scope, PartialShape({2}), ElementType::kFloat,
                                              {.var_name = "sum"});
      const Output once = ops::AssignAdd(scope, v, Tensor::Vector<float>({1, 2}));
      const Output twice = ops::ScatterAdd(scope, once, Tensor::Vector<int32_t>({1, 1}),
                                           Tensor::Vector<float>({10, 20}));
      results.push_back(ops::DestroyTemporaryVariable(scope, twice, "sum"));
    }
    return results;
  });
  ASSERT_TRUE(values.ok()) << values.status();
  for (const Tensor& value : *values) {
    EXPECT_THAT(value.unchecked_values<float>(), ElementsAre(1, 32));
  }
}

}  // namespace
}  // namespace troupe
