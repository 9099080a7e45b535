// Scattered updates of variables, slices of variables, changes in place.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/state/fake_variable.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor Ints(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
Tensor Vec(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }
Tensor Matrix(std::initializer_list<double> values, int64_t rows, int64_t columns,
              ElementType type = ElementType::kFloat) {
  return MakeTensor(type, Shape({rows, columns}), values);
}

/// What an op makes of an element and an update, in double precision.
double Combined(const std::string& op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  return b;
}

const char* const kOps[] = {"Add", "Sub", "Mul", "Div", "Min", "Max", "Update"};

TEST(Scatter, EveryOperationOnReferences) {
  for (const char* name : kOps) {
    SCOPED_TRACE(name);
    const Tensor start = Matrix({1, 2, 3, 4, 5, 6}, 3, 2);
    auto variable = MakeRef<FakeVariable>("v", *start.Clone());
    OpTest op(std::string("Scatter") + name);
    op.InputRef(variable.get()).Input(Ints({2, 0, 2})).Input(Matrix({2, 4, -1, 8, 5, 0.5}, 3, 2));
    ASSERT_TRUE(op.Run().ok());
    EXPECT_EQ(op.output_slot(0).ref, variable.get());
    std::vector<double> want = {1, 2, 3, 4, 5, 6};
    const std::vector<double> updates = {2, 4, -1, 8, 5, 0.5};
    const int rows[] = {2, 0, 2};
    for (int i = 0; i < 6; ++i) {
      double& element = want[rows[i / 2] * 2 + i % 2];
      element = Combined(name, element, updates[i]);
    }
    ExpectNear(variable->value(), MakeTensor(ElementType::kFloat, Shape({3, 2}), want));

    // A scalar is for all.
    auto other = MakeRef<FakeVariable>("v", *start.Clone());
    OpTest scalar(std::string("Scatter") + name);
    scalar.InputRef(other.get()).Input(Tensor::Scalar<int32_t>(1)).Input(Tensor::Scalar(2.0f));
    ASSERT_TRUE(scalar.Run().ok());
    ExpectNear(other->value(),
               Matrix({1, 2, Combined(name, 3, 2), Combined(name, 4, 2), 5, 6}, 3, 2));
  }
}

TEST(Scatter, NdOperationsOnReferences) {
  for (const std::string name : {"Add", "Sub", "Update"}) {
    auto variable = MakeRef<FakeVariable>("v", Matrix({1, 2, 3, 4}, 2, 2));
    OpTest op("ScatterNd" + name);
    op.InputRef(variable.get())
        .Input(Tensor::FromValues<int32_t>({1, 1, 0, 1}, Shape({2, 2})).value())
        .Input(Vec({10, 20}));
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(variable->value(),
                Matrix({1, Combined(name, 2, 20), 3, Combined(name, 4, 10)}, 2, 2));
    // A vector of indices is one of rows.
    OpTest rows("ScatterNd" + name);
    rows.InputRef(variable.get()).Input(Ints({0})).Input(Matrix({7, 7}, 1, 2));
    ASSERT_TRUE(rows.Run().ok());
  }
  // Sums of bools are "or", differences "exclusive or".
  for (const bool add : {true, false}) {
    auto flags = MakeRef<FakeVariable>("v", Tensor::Vector<bool>({true, false, true, false}));
    OpTest op(add ? "ScatterNdAdd" : "ScatterNdSub");
    op.InputRef(flags.get())
        .Input(Tensor::FromValues<int32_t>({0, 1}, Shape({2, 1})).value())
        .Input(Tensor::Vector<bool>({true, true}));
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(flags->value(), Tensor::Vector<bool>({add, true, true, false}));
  }
}

TEST(Scatter, IntegersWrapAround) {
  auto variable = MakeRef<FakeVariable>("v", Tensor::Vector<int8_t>({127, -128, 100, 7}));
  OpTest add("ScatterAdd");
  add.InputRef(variable.get()).Input(Ints({0})).Input(Tensor::Vector<int8_t>({1}));
  ASSERT_TRUE(add.Run().ok());
  OpTest divide("ScatterDiv");
  divide.InputRef(variable.get()).Input(Ints({1})).Input(Tensor::Vector<int8_t>({-1}));
  ASSERT_TRUE(divide.Run().ok());
  OpTest multiply("ScatterMul");
  multiply.InputRef(variable.get()).Input(Ints({2})).Input(Tensor::Vector<int8_t>({100}));
  ASSERT_TRUE(multiply.Run().ok());
  ExpectEqual(variable->value(), Tensor::Vector<int8_t>({-128, -128, 16, 7}));

  OpTest by_zero("ScatterDiv");
  by_zero.InputRef(variable.get()).Input(Ints({3, 2})).Input(Tensor::Vector<int8_t>({7, 0}));
  EXPECT_EQ(by_zero.Run().code(), StatusCode::kInvalidArgument);
  // Nothing was written.
  ExpectEqual(variable->value(), Tensor::Vector<int8_t>({-128, -128, 16, 7}));
}

TEST(Scatter, ReadersKeepWhatTheyHaveRead) {
  auto variable = MakeRef<FakeVariable>("v", Vec({1, 2}));
  const Tensor read = variable->value();
  OpTest op("ScatterUpdate");
  op.InputRef(variable.get()).Input(Ints({1})).Input(Vec({5}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(read, Vec({1, 2}));
  ExpectEqual(variable->value(), Vec({1, 5}));
  const void* address = variable->value().raw_data();
  ASSERT_TRUE(op.Run().ok());
  EXPECT_EQ(variable->value().raw_data(), address);
}

TEST(Scatter, BadInput) {
  auto variable = MakeRef<FakeVariable>("v", Matrix({1, 2, 3, 4}, 2, 2));
  const auto run = [&](const char* name, const Tensor& indices, const Tensor& updates) {
    OpTest op(name);
    op.InputRef(variable.get()).Input(indices).Input(updates);
    return op.Run();
  };
  const absl::Status outside = run("ScatterAdd", Ints({0, 2}), Matrix({1, 1, 1, 1}, 2, 2));
  EXPECT_EQ(outside.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(outside.message().find("indices[1] = 2"), std::string::npos) << outside;
  for (const Tensor& updates : {Matrix({1, 1}, 2, 1), Vec({1, 1}), Matrix({1, 1, 1, 1}, 4, 1)}) {
    EXPECT_EQ(run("ScatterAdd", Ints({0, 1}), updates).code(), StatusCode::kInvalidArgument);
  }
  const Tensor no_components = Tensor::Uninitialized(ElementType::kInt32, Shape({1, 0}));
  EXPECT_EQ(
      run("ScatterNdAdd", no_components, Matrix({1, 2, 3, 4}, 2, 2).Reshaped({1, 2, 2})).code(),
      StatusCode::kInvalidArgument);
  const Tensor negative = Tensor::FromValues<int32_t>({1, -1}, Shape({1, 2})).value();
  const absl::Status bad = run("ScatterNdUpdate", negative, Vec({1}));
  EXPECT_NE(bad.message().find("indices[0,1] = -1"), std::string::npos) << bad;
  ExpectEqual(variable->value(), Matrix({1, 2, 3, 4}, 2, 2));

  auto scalar = MakeRef<FakeVariable>("s", Tensor::Scalar(1.0f));
  OpTest on_scalar("ScatterAdd");
  on_scalar.InputRef(scalar.get()).Input(Ints({0})).Input(Vec({1}));
  EXPECT_EQ(on_scalar.Run().code(), StatusCode::kInvalidArgument);
  auto empty = MakeRef<FakeVariable>("weights", ElementType::kFloat);
  OpTest on_nothing("ScatterAdd");
  on_nothing.InputRef(empty.get()).Input(Ints({0})).Input(Vec({1}));
  const absl::Status status = on_nothing.Run();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("weights"), std::string::npos) << status;
}

// Many rows into few places: each place gets its updates in order, on any number of threads.
TEST(Scatter, SameBitsOnAnyNumberOfThreads) {
  for (const int64_t inner : {1, 3, 40, 9000}) {
    SCOPED_TRACE(inner);
    const int64_t rows = 5000000 / (inner + 200), places = 50;
    const Tensor start = RandomTensor(ElementType::kFloat, Shape({places, inner}), -1, 1, 5);
    const Tensor indices = RandomTensor(ElementType::kInt64, Shape({rows}), 0, places - 1, 6);
    const Tensor updates = RandomTensor(ElementType::kFloat, Shape({rows, inner}), -1, 1, 7);
    std::vector<float> want(start.unchecked_values<float>().begin(),
                            start.unchecked_values<float>().end());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < inner; ++i) {
        want[indices.unchecked_data<int64_t>()[r] * inner + i] +=
            updates.unchecked_data<float>()[r * inner + i];
      }
    }
    for (const int threads : {1, 3}) {
      auto variable = MakeRef<FakeVariable>("v", *start.Clone());
      OpTest op("ScatterAdd", threads);
      op.InputRef(variable.get()).Input(indices).Input(updates);
      ASSERT_TRUE(op.Run().ok());
      ExpectEqual(variable->value(), Tensor::FromValues<float>(want, start.shape()).value());
    }
  }
}

class ResourceScatter : public ::testing::Test {
 protected:
  ResourceScatter() : handle_("VarHandleOp") {
    handle_.Attr("dtype", ElementType::kFloat).Attr("shape", Shape({2, 2}));
    handle_.Attr("shared_name", "v").Resources(&resources_);
  }
  Tensor Handle() {
    EXPECT_TRUE(handle_.Run().ok());
    return handle_.output(0);
  }
  void Assign(const Tensor& value) {
    OpTest op("AssignVariableOp");
    op.Resources(&resources_).Input(Handle()).Input(value);
    ASSERT_TRUE(op.Run().ok());
  }
  Tensor Value() {
    OpTest op("ReadVariableOp");
    op.Attr("dtype", ElementType::kFloat).Resources(&resources_).Input(Handle());
    EXPECT_TRUE(op.Run().ok());
    return op.output(0);
  }
  absl::Status Run(OpTest& op, const Tensor& indices, const Tensor* updates = nullptr) {
    op.Resources(&resources_).Input(Handle()).Input(indices);
    if (updates != nullptr) {
      op.Input(*updates);
    } else {
      op.Attr("dtype", ElementType::kFloat);
    }
    return op.Run();
  }

  FakeResources resources_;
  OpTest handle_;
};

TEST_F(ResourceScatter, EveryOperation) {
  for (const char* name : kOps) {
    SCOPED_TRACE(name);
    Assign(Matrix({1, 2, 3, 4}, 2, 2));
    OpTest op(std::string("ResourceScatter") + name);
    const Tensor updates = Matrix({4, 0.5}, 1, 2);
    ASSERT_TRUE(Run(op, Ints({1}), &updates).ok());
    ExpectEqual(Value(), Matrix({1, 2, Combined(name, 3, 4), Combined(name, 4, 0.5)}, 2, 2));
  }
  for (const std::string name : {"Add", "Sub", "Update"}) {
    Assign(Matrix({1, 2, 3, 4}, 2, 2));
    OpTest op("ResourceScatterNd" + name);
    const Tensor updates = Vec({8});
    ASSERT_TRUE(Run(op, Tensor::FromValues<int32_t>({0, 1}, Shape({1, 2})).value(), &updates).ok());
    ExpectEqual(Value(), Matrix({1, Combined(name, 2, 8), 3, 4}, 2, 2));
  }
  OpTest ignoring("ResourceScatterNdUpdate");
  ignoring.Attr("bad_indices_policy", "IGNORE");
  Assign(Matrix({1, 2, 3, 4}, 2, 2));
  const Tensor updates = Vec({8, 9});
  ASSERT_TRUE(
      Run(ignoring, Tensor::FromValues<int32_t>({0, 7, 1, 0}, Shape({2, 2})).value(), &updates)
          .ok());
  ExpectEqual(Value(), Matrix({1, 2, 9, 4}, 2, 2));
}

TEST_F(ResourceScatter, Gathers) {
  Assign(Matrix({1, 2, 3, 4}, 2, 2));
  OpTest gather("ResourceGather");
  ASSERT_TRUE(Run(gather, Ints({1, 1, 0})).ok());
  ExpectEqual(gather.output(0), Matrix({3, 4, 3, 4, 1, 2}, 3, 2));
  OpTest batch("ResourceGather");
  batch.Attr("batch_dims", 1);
  ASSERT_TRUE(Run(batch, Ints({1, 0})).ok());
  ExpectEqual(batch.output(0), Vec({2, 3}));
  OpTest nd("ResourceGatherNd");
  ASSERT_TRUE(Run(nd, Tensor::FromValues<int32_t>({1, 0}, Shape({1, 2})).value()).ok());
  ExpectEqual(nd.output(0), Vec({3}));

  OpTest outside("ResourceGather");
  const absl::Status status = Run(outside, Ints({0, -1}));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("indices[1] = -1"), std::string::npos) << status;
  OpTest mismatch("ResourceGather");
  mismatch.Attr("batch_dims", 1);
  EXPECT_EQ(Run(mismatch, Ints({1, 0, 1})).code(), StatusCode::kInvalidArgument);
  OpTest deep("ResourceGatherNd");
  EXPECT_EQ(Run(deep, Ints({0, 0, 0})).code(), StatusCode::kInvalidArgument);
}

TEST_F(ResourceScatter, MissingVariables) {
  const Tensor updates = Matrix({4, 2}, 1, 2);
  OpTest scatter("ResourceScatterAdd"), gather("ResourceGather");
  EXPECT_EQ(Run(scatter, Ints({1}), &updates).code(), StatusCode::kNotFound);
  EXPECT_EQ(Run(gather, Ints({1})).code(), StatusCode::kNotFound);
  Assign(Matrix({1, 2, 3, 4}, 2, 2));
  OpTest other_type("ResourceScatterAdd");
  const Tensor doubles = Matrix({4, 2}, 1, 2, ElementType::kDouble);
  EXPECT_EQ(Run(other_type, Ints({1}), &doubles).code(), StatusCode::kInvalidArgument);
}

TEST(Inplace, RowsAreCountedModuloTheirNumber) {
  const Tensor x = Matrix({1, 2, 3, 4}, 2, 2), v = Matrix({10, 20, 30, 40}, 2, 2);
  const auto run = [&](const char* name, std::initializer_list<double> want) {
    OpTest op(name);
    op.Input(x).Input(Ints({-1, 3})).Input(v);
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0), Matrix(want, 2, 2));
    ExpectEqual(x, Matrix({1, 2, 3, 4}, 2, 2));
  };
  run("InplaceUpdate", {1, 2, 30, 40});
  run("InplaceAdd", {1, 2, 43, 64});
  run("InplaceSub", {1, 2, -37, -56});

  OpTest in_place("InplaceAdd");
  in_place.Input(*x.Clone(), /*forwardable=*/true).Input(Ints({0, 0})).Input(v);
  ASSERT_TRUE(in_place.Run().ok());
  ExpectEqual(in_place.output(0), Matrix({41, 62, 3, 4}, 2, 2));
}

TEST(Inplace, BadInput) {
  const auto run = [](const char* name, const Tensor& x, const Tensor& i, const Tensor& v) {
    OpTest op(name);
    op.Input(x).Input(i).Input(v);
    return op.Run().code();
  };
  const Tensor x = Matrix({1, 2, 3, 4}, 2, 2), row = Matrix({1, 2}, 1, 2);
  EXPECT_EQ(run("InplaceAdd", x, Tensor::Scalar<int32_t>(0), row), StatusCode::kInvalidArgument);
  EXPECT_EQ(run("InplaceAdd", x, Ints({0, 1}), row), StatusCode::kInvalidArgument);
  EXPECT_EQ(run("InplaceAdd", x, Ints({0}), Vec({1, 2})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run("InplaceAdd", Tensor::Scalar(1.0f), Ints({0}), Tensor::Scalar(1.0f)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(
      run("InplaceAdd", Tensor::Vector<bool>({true}), Ints({0}), Tensor::Vector<bool>({true})),
      StatusCode::kInvalidArgument);
  EXPECT_EQ(run("InplaceUpdate", Tensor::Uninitialized(ElementType::kFloat, Shape({0, 2})),
                Ints({0}), row),
            StatusCode::kOk);
}

TEST(Inplace, DeepCopy) {
  const Tensor x = Tensor::Vector<std::string>({"a", "b"});
  OpTest op("DeepCopy");
  op.Input(x);
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), x);
  EXPECT_NE(op.output(0).raw_data(), x.raw_data());
}

}  // namespace
}  // namespace troupe::testing
