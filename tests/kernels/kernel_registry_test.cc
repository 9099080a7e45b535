#include "kernels/kernel_registry.h"

#include "graph/protos/graph.pb.h"
#include "gtest/gtest.h"
#include "kernels/cancellation.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

class Nothing : public Kernel {
 public:
  Nothing(KernelConstruction&, absl::Status*) {}
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

REGISTER_KERNEL(KernelSpec("RegistryTestOp").Types("T", {ElementType::kFloat}),
                MakeKernel<Nothing>);
REGISTER_KERNEL(KernelSpec("RegistryTestOp").Types("T", FloatTypes()).Priority(1),
                MakeKernel<Nothing>);
REGISTER_KERNEL(KernelSpec("RegistryTestOp").Device("GPU"), MakeKernel<Nothing>);

NodeDef Node(DataType type) {
  NodeDef def;
  def.set_name("n");
  def.set_op("RegistryTestOp");
  (*def.mutable_attr())["T"].set_type(type);
  return def;
}

TEST(KernelRegistry, PriorityAndConstraintsDecide) {
  auto found = KernelRegistry::Global()->Find("CPU", Node(DT_FLOAT));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->spec.priority, 1);
  EXPECT_TRUE(KernelRegistry::Global()->Find("GPU", Node(DT_STRING)).ok());
  NodeDef list = Node(DT_FLOAT);
  auto* types = (*list.mutable_attr())["T"].mutable_list();
  types->add_type(DT_FLOAT);
  types->add_type(DT_HALF);
  EXPECT_TRUE(KernelRegistry::Global()->Find("CPU", list).ok());
  types->add_type(DT_INT32);
  EXPECT_FALSE(KernelRegistry::Global()->Find("CPU", list).ok());
}

TEST(KernelRegistry, NotFoundListsWhatThereIs) {
  const absl::Status status = KernelRegistry::Global()->Find("CPU", Node(DT_STRING)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  for (const char* part : {"'n'", "RegistryTestOp", "T=string", "CPU with T in {float}",
                           "{half, bfloat16, float, double}", "GPU"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << part << " in " << status;
  }
}

REGISTER_KERNEL(KernelSpec("AnyDeviceTestOp").Device("DEFAULT").Types("T", FloatTypes()),
                MakeKernel<Nothing>);
REGISTER_KERNEL(KernelSpec("AnyDeviceTestOp").Device("GPU").Types("T", {ElementType::kHalf}),
                MakeKernel<Nothing>);

TEST(KernelRegistry, EveryTypeOfDeviceHasTheDefaultUnlessItHasItsOwn) {
  const auto type_for = [](std::string_view device_type, DataType type) {
    NodeDef def = Node(type);
    def.set_op("AnyDeviceTestOp");
    const auto found = KernelRegistry::Global()->Find(device_type, def);
    return found.ok() ? (*found)->spec.device_type : "none";
  };
  EXPECT_EQ(type_for("CPU", DT_FLOAT), "DEFAULT");
  EXPECT_EQ(type_for("GPU", DT_FLOAT), "DEFAULT");
  EXPECT_EQ(type_for("GPU", DT_HALF), "GPU");
  EXPECT_EQ(type_for("CPU", DT_HALF), "DEFAULT");
  EXPECT_EQ(type_for("GPU", DT_STRING), "none");
}

absl::Status ThreeAndTrue(KernelContext&, int64_t number, bool flag) {
  return number == 3 && flag ? absl::OkStatus() : absl::InternalError("other values");
}
REGISTER_KERNELS(KernelSpec("AttrTestOp"), (MakeAttrKernel<ThreeAndTrue, "number", "flag">),
                 "AttrTestOpV2");

TEST(MakeAttrKernel, GivesTheFunctionTheAttributes) {
  NodeDef def;
  def.set_op("AttrTestOpV2");
  (*def.mutable_attr())["number"].set_i(3);
  KernelConstruction construction(&def, nullptr, nullptr, {}, {});
  const absl::Status status = KernelRegistry::Global()->Create(construction, "CPU").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("flag"), std::string::npos) << status;
  (*def.mutable_attr())["flag"].set_b(true);
  auto kernel = KernelRegistry::Global()->Create(construction, "CPU");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  KernelContext ctx(nullptr, nullptr, nullptr, 0, nullptr, 0, 0);
  EXPECT_EQ((*kernel)->Compute(ctx), absl::OkStatus());
}

TEST(CancellationToken, FirstReasonWinsAndCallbacksRunOnce) {
  CancellationToken token;
  int calls = 0;
  uint64_t first, second;
  ASSERT_TRUE(token.Register([&] { ++calls; }, &first));
  ASSERT_TRUE(token.Register([&] { calls += 10; }, &second));
  EXPECT_TRUE(token.Deregister(second));
  EXPECT_TRUE(token.status().ok());
  token.Cancel(absl::AbortedError("one"));
  token.Cancel(absl::InternalError("two"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(token.status().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(token.Deregister(first));
  EXPECT_FALSE(token.Register([] {}, &first));
  token.Reset();
  EXPECT_FALSE(token.cancelled());
}

}  // namespace
}  // namespace troupe
