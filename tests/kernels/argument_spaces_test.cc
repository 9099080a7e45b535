#include "kernels/argument_spaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using testing::ElementsAre;
constexpr MemorySpace kHost = MemorySpace::kHost;
constexpr MemorySpace kDevice = MemorySpace::kDevice;

/// Of a node of `op` with two inputs where there is a list.
absl::StatusOr<ArgumentSpaces> Spaces(const char* op, DataType type, const KernelSpec& kernel) {
  NodeDef def;
  def.set_op(op);
  auto& attrs = *def.mutable_attr();
  for (const char* name : {"T", "dtype"}) attrs[name].set_type(type);
  attrs["Tidx"].set_type(DT_INT64);
  attrs["Tshape"].set_type(DT_INT64);
  attrs["N"].set_i(2);
  const AttrReader reader(&def);
  return FindArgumentSpaces(*OpRegistry::Global()->LookUp(op).value()->def, reader, kernel);
}

TEST(ArgumentSpaces, AreTheDevicesButForWhatTheRegistrationSays) {
  const auto spaces =
      Spaces("ConcatV2", DT_FLOAT, KernelSpec("ConcatV2").Device("GPU").HostMemory("axis"));
  EXPECT_THAT(spaces->inputs, ElementsAre(kDevice, kDevice, kHost));
  EXPECT_THAT(spaces->outputs, ElementsAre(kDevice));
  EXPECT_TRUE(spaces->AnyOnDevice());
  const auto list =
      Spaces("ConcatV2", DT_FLOAT, KernelSpec("ConcatV2").Device("GPU").HostMemory("values"));
  EXPECT_THAT(list->inputs, ElementsAre(kHost, kHost, kDevice));
}

TEST(ArgumentSpaces, TheDefaultKeepsSizesAndCountersOnTheHost) {
  const auto reshape = [](DataType type, const char* device) {
    return *Spaces("Reshape", type, KernelSpec("Reshape").Device(device).HostMemory("shape"));
  };
  EXPECT_TRUE(reshape(DT_FLOAT, "DEFAULT").AnyOnDevice());
  EXPECT_TRUE(reshape(DT_INT64, "DEFAULT").AnyOnDevice());
  EXPECT_FALSE(reshape(DT_INT32, "DEFAULT").AnyOnDevice());
  EXPECT_TRUE(reshape(DT_INT32, "GPU").AnyOnDevice()) << "its own kernels say what they want";
  EXPECT_FALSE(reshape(DT_STRING, "GPU").AnyOnDevice());
}

TEST(ArgumentSpaces, AReferenceIsWhereItsVariablesValueIs) {
  const KernelSpec any = KernelSpec("Assign").Device("DEFAULT");
  EXPECT_THAT(Spaces("Assign", DT_FLOAT, any)->inputs, ElementsAre(kDevice, kDevice));
  EXPECT_THAT(Spaces("Assign", DT_FLOAT, any)->outputs, ElementsAre(kDevice));
  EXPECT_FALSE(Spaces("Assign", DT_INT32, any)->AnyOnDevice());
  const KernelSpec read = KernelSpec("ReadVariableOp").Device("DEFAULT");
  EXPECT_THAT(Spaces("ReadVariableOp", DT_FLOAT, read)->inputs, ElementsAre(kHost)) << "a handle";
  EXPECT_THAT(Spaces("ReadVariableOp", DT_FLOAT, read)->outputs, ElementsAre(kDevice));
}

TEST(ArgumentSpaces, AStarIsAllOfThem) {
  const KernelSpec spec = KernelSpec("Add").Device("GPU").HostMemory(kAllArguments);
  EXPECT_FALSE(Spaces("Add", DT_FLOAT, spec)->AnyOnDevice());
}

TEST(ArgumentSpaces, AttributesThatAreMissingAreAnError) {
  NodeDef def;
  def.set_op("Add");
  const AttrReader reader(&def);
  const absl::Status status = FindArgumentSpaces(*OpRegistry::Global()->LookUp("Add").value()->def,
                                                 reader, KernelSpec("Add").Device("GPU"))
                                  .status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("T"));
}

}  // namespace
}  // namespace troupe
