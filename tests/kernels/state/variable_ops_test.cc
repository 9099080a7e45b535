#include "gtest/gtest.h"
#include "kernels/cancellation.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/queues/calls.h"
#include "tests/kernels/state/fake_variable.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor Vec(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

TEST(ReferenceVariables, AssignThenUpdateInPlace) {
  auto variable = MakeRef<FakeVariable>("v", ElementType::kFloat, PartialShape({2}));
  OpTest assign("Assign");
  assign.InputRef(variable.get()).Input(Vec({1, 2}));
  ASSERT_TRUE(assign.Run().ok());
  EXPECT_EQ(assign.output_slot(0).ref, variable.get());
  ExpectEqual(variable->value(), Vec({1, 2}));

  const void* address = variable->value().raw_data();
  OpTest add("AssignAdd");
  add.InputRef(variable.get()).Input(Vec({10, 20}));
  ASSERT_TRUE(add.Run().ok());
  ExpectEqual(variable->value(), Vec({11, 22}));
  EXPECT_EQ(variable->value().raw_data(), address);

  // A reader keeps what it has read.
  const Tensor read = variable->value();
  OpTest subtract("AssignSub");
  subtract.InputRef(variable.get()).Input(Vec({1, 1}));
  ASSERT_TRUE(subtract.Run().ok());
  ExpectEqual(read, Vec({11, 22}));
  ExpectEqual(variable->value(), Vec({10, 21}));
}

TEST(ReferenceVariables, AssignTakesOverABufferAndChecksShapes) {
  auto variable = MakeRef<FakeVariable>("v", ElementType::kFloat, PartialShape({-1, 2}));
  OpTest wrong("Assign");
  wrong.InputRef(variable.get()).Input(Vec({1, 2}));
  EXPECT_EQ(wrong.Run().code(), StatusCode::kInvalidArgument);
  OpTest right("Assign");
  right.InputRef(variable.get())
      .Input(MakeTensor(ElementType::kFloat, Shape({1, 2}), {1, 2}),
             /*forwardable=*/true);
  ASSERT_TRUE(right.Run().ok());
  OpTest other("Assign");
  other.InputRef(variable.get())
      .Input(MakeTensor(ElementType::kFloat, Shape({2, 2}), {1, 2, 3, 4}));
  EXPECT_EQ(other.Run().code(), StatusCode::kInvalidArgument);
  OpTest unchecked("Assign");
  unchecked.Attr("validate_shape", false).InputRef(variable.get()).Input(Vec({7}));
  ASSERT_TRUE(unchecked.Run().ok());
  ExpectEqual(variable->value(), Vec({7}));
}

TEST(ReferenceVariables, UninitialisedOnesNameThemselves) {
  auto variable = MakeRef<FakeVariable>("weights", ElementType::kFloat);
  OpTest add("AssignAdd");
  add.InputRef(variable.get()).Input(Vec({1}));
  const absl::Status status = add.Run();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("weights"), std::string::npos) << status;
  OpTest asked("IsVariableInitialized");
  asked.Attr("dtype", ElementType::kFloat).InputRef(variable.get());
  ASSERT_TRUE(asked.Run().ok());
  ExpectEqual(asked.output(0), Tensor::Scalar(false));
}

TEST(ReferenceVariables, CountUpTo) {
  auto variable = MakeRef<FakeVariable>("n", Tensor::Scalar<int32_t>(4));
  OpTest count("CountUpTo");
  count.Attr("limit", 6).InputRef(variable.get());
  ASSERT_TRUE(count.Run().ok());
  ExpectEqual(count.output(0), Tensor::Scalar<int32_t>(4));
  ASSERT_TRUE(count.Run().ok());
  EXPECT_EQ(count.Run().code(), StatusCode::kOutOfRange);
  ExpectEqual(variable->value(), Tensor::Scalar<int32_t>(6));
}

TEST(ReferenceVariables, VariableOpFindsItsVariableByName) {
  FakeResources resources;
  OpTest a("VariableV2"), b("VariableV2");
  for (OpTest* op : {&a, &b}) {
    op->Attr("dtype", ElementType::kFloat).Attr("shape", Shape({2})).Attr("shared_name", "x");
    op->Resources(&resources);
    ASSERT_TRUE(op->Run().ok());
  }
  Variable* first = a.output_slot(0).ref;
  EXPECT_EQ(first, b.output_slot(0).ref);
  ASSERT_TRUE(resources.Destroy("", "x").ok());
  ASSERT_TRUE(a.Run().ok());
  ASSERT_TRUE(b.Run().ok());
  EXPECT_EQ(a.output_slot(0).ref, b.output_slot(0).ref);
  EXPECT_FALSE(a.output_slot(0).ref->destroyed());
}

TEST(ResourceCountUpTo, CountsUntilTheLimit) {
  FakeResources resources;
  OpTest handle("VarHandleOp");
  handle.Attr("dtype", ElementType::kInt64).Attr("shape", Shape()).Attr("shared_name", "n");
  ASSERT_TRUE(handle.Resources(&resources).Run().ok());
  OpTest assign("AssignVariableOp"), count("ResourceCountUpTo"), other("ResourceCountUpTo");
  assign.Resources(&resources).Input(handle.output(0)).Input(Tensor::Scalar<int64_t>(4));
  count.Resources(&resources)
      .Input(handle.output(0))
      .Attr("limit", 6)
      .Attr("T", ElementType::kInt64);
  other.Resources(&resources)
      .Input(handle.output(0))
      .Attr("limit", 6)
      .Attr("T", ElementType::kInt32);
  EXPECT_EQ(count.Run().code(), StatusCode::kNotFound);
  ASSERT_TRUE(assign.Run().ok());
  ASSERT_TRUE(count.Run().ok());
  ExpectEqual(count.output(0), Tensor::Scalar<int64_t>(4));
  EXPECT_EQ(other.Run().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(count.Run().ok());
  ExpectEqual(count.output(0), Tensor::Scalar<int64_t>(5));
  EXPECT_EQ(count.Run().code(), StatusCode::kOutOfRange);
}

class ResourceVariables : public ::testing::Test {
 protected:
  ResourceVariables() : handle_("VarHandleOp") {
    handle_.Attr("dtype", ElementType::kFloat).Attr("shape", Shape({2})).Attr("shared_name", "v");
    handle_.Resources(&resources_);
  }
  Tensor Handle() {
    EXPECT_TRUE(handle_.Run().ok());
    return handle_.output(0);
  }
  absl::Status Run(const char* op_name, const Tensor* value = nullptr, Tensor* result = nullptr,
                   bool flag = false) {
    OpTest op(op_name);
    op.Resources(&resources_).Input(Handle());
    if (value != nullptr) op.Input(*value);
    if (std::string(op_name) == "ReadVariableOp") op.Attr("dtype", ElementType::kFloat);
    if (std::string(op_name) == "AssignVariableOp") op.Attr("validate_shape", flag);
    if (std::string(op_name) == "DestroyResourceOp") op.Attr("ignore_lookup_error", flag);
    absl::Status status = op.Run();
    if (status.ok() && result != nullptr) *result = op.output(0);
    return status;
  }

  FakeResources resources_;
  OpTest handle_;
};

TEST_F(ResourceVariables, LiveFromTheFirstAssignmentToTheirDestruction) {
  const Tensor value = Vec({1, 2}), longer = Vec({1, 2, 3});
  Tensor result;
  EXPECT_EQ(Run("ReadVariableOp").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Run("AssignAddVariableOp", &value).code(), StatusCode::kNotFound);
  EXPECT_EQ(Run("VariableShape").code(), StatusCode::kNotFound);
  EXPECT_EQ(Run("DestroyResourceOp").code(), StatusCode::kNotFound);
  EXPECT_TRUE(Run("DestroyResourceOp", nullptr, nullptr, true).ok());
  ASSERT_TRUE(Run("VarIsInitializedOp", nullptr, &result).ok());
  ExpectEqual(result, Tensor::Scalar(false));

  const Tensor early_handle = Handle();
  ASSERT_TRUE(Run("AssignVariableOp", &value).ok());
  ASSERT_TRUE(Run("VarIsInitializedOp", nullptr, &result).ok());
  ExpectEqual(result, Tensor::Scalar(true));
  ASSERT_TRUE(Run("AssignAddVariableOp", &value).ok());
  ASSERT_TRUE(Run("ReadVariableOp", nullptr, &result).ok());
  ExpectEqual(result, Vec({2, 4}));
  ASSERT_TRUE(Run("AssignSubVariableOp", &value).ok());
  EXPECT_EQ(Run("AssignSubVariableOp", &longer).code(), StatusCode::kInvalidArgument);
  ExpectEqual(result, Vec({2, 4}));

  // A handle from before the variable existed finds it by name.
  OpTest read("ReadVariableOp");
  read.Attr("dtype", ElementType::kFloat).Resources(&resources_).Input(early_handle);
  ASSERT_TRUE(read.Run().ok());
  ExpectEqual(read.output(0), value);

  EXPECT_EQ(Run("AssignVariableOp", &longer, nullptr, true).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(Run("AssignVariableOp", &longer).ok());
  ASSERT_TRUE(Run("VariableShape", nullptr, &result).ok());
  ExpectEqual(result, Tensor::Vector<int32_t>({3}));

  const Tensor stale = Handle();
  ASSERT_TRUE(Run("DestroyResourceOp").ok());
  EXPECT_EQ(Run("ReadVariableOp").code(), StatusCode::kFailedPrecondition);
  OpTest stale_read("ReadVariableOp");
  stale_read.Attr("dtype", ElementType::kFloat).Resources(&resources_).Input(stale);
  EXPECT_EQ(stale_read.Run().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ResourceVariables, TypesAreChecked) {
  const Tensor value = Vec({1, 2}), integers = Tensor::Vector<int32_t>({1, 2});
  ASSERT_TRUE(Run("AssignVariableOp", &value).ok());
  EXPECT_EQ(Run("AssignVariableOp", &integers).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Run("AssignAddVariableOp", &integers).code(), StatusCode::kInvalidArgument);
}

TEST(WaitingForVariables, TheCallGoesOnWhenAllAreLent) {
  auto var = MakeRef<FakeVariable>("var", Vec({1, 2}));
  auto accum = MakeRef<FakeVariable>("accum", Vec({0, 0}));
  for (const bool both : {false, true}) {
    var->set_busy(true);
    accum->set_busy(both);
    OpTest op("ApplyMomentum");
    op.InputRef(var.get()).InputRef(accum.get()).Input(Tensor::Scalar(1.0f)).Input(Vec({1, 1}));
    op.Input(Tensor::Scalar(0.0f));
    ASSERT_TRUE(op.Run().ok());
    EXPECT_EQ(op.output_slot(0).ref, var.get());
  }
  var->set_busy(false);
  accum->set_busy(false);
  EXPECT_EQ(var->conflicts + accum->conflicts, 0);
  ExpectEqual(var->value(), Vec({-1, 0}));
}

// Whoever gives the variable back may be a reader of the transport.
TEST(WaitingForVariables, ALargeUpdateIsLeftToThePlayerOfItsStep) {
  for (const bool large : {false, true}) {
    const std::vector<float> zeros(large ? 1 << 20 : 2, 0.0f), ones(zeros.size(), 1.0f);
    auto var = MakeRef<FakeVariable>("var", Tensor::Vector<float>(absl::MakeConstSpan(zeros)));
    var->set_busy(true);
    ResourceHandle handle;
    handle.resource = var;
    Calls calls;
    calls.Attr("dtype", ElementType::kFloat);
    auto call = calls.Start(
        "AssignAddVariableOp",
        {Tensor::Scalar(std::move(handle)), Tensor::Vector<float>(absl::MakeConstSpan(ones))});
    EXPECT_TRUE(call->done());
    EXPECT_EQ(var->value().unchecked_values<float>()[0], large ? 0 : 1);
    EXPECT_TRUE(call->status().ok());
    EXPECT_EQ(var->value().unchecked_values<float>()[0], 1);
  }
}

TEST(WaitingForVariables, AVariableGivenTwiceIsLentOnce) {
  auto var = MakeRef<FakeVariable>("var", Vec({1, 2}));
  for (const bool busy : {false, true}) {
    var->set_busy(busy);
    OpTest op("ApplyMomentum");
    op.InputRef(var.get()).InputRef(var.get()).Input(Tensor::Scalar(1.0f)).Input(Vec({1, 1}));
    op.Input(Tensor::Scalar(1.0f));
    ASSERT_TRUE(op.Run().ok());
    EXPECT_EQ(var->conflicts, 0);
  }
}

TEST(WaitingForVariables, CancellationEndsTheWait) {
  CancellationToken token;
  auto var = MakeRef<FakeVariable>("var", Vec({1, 2}));
  var->set_busy(true);
  var->on_lend = [&] { token.Cancel(absl::AbortedError("another node failed")); };
  OpTest op("AssignAdd");
  op.Cancellation(&token).InputRef(var.get()).Input(Vec({1, 1}));
  EXPECT_EQ(op.Run().code(), StatusCode::kAborted);
  // Later waits do not begin.
  EXPECT_EQ(op.Run().code(), StatusCode::kAborted);
  var->set_busy(false);
  var->on_lend = nullptr;
  ExpectEqual(var->value(), Vec({1, 2}));
  EXPECT_TRUE(op.Run().ok());
}

}  // namespace
}  // namespace troupe::testing
