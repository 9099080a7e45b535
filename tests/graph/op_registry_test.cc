#include "graph/op_registry.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "graph/op_def_parser.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

OpDef Built(const OpDefBuilder& builder) {
  OpRegistration registration;
  const absl::Status status = builder.Build(&registration);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? *registration.def : OpDef();
}

void ExpectDef(const OpDefBuilder& builder, const std::string& text) {
  OpDef expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &expected)) << text;
  const OpDef def = Built(builder);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(expected, def))
      << def.DebugString();
}

TEST(OpDefBuilder, Arguments) {
  ExpectDef(OpDefBuilder("Test")
                .Input("a: float")
                .Input("b: T")
                .Input("c: N * T")
                .Input("d: Ts")
                .Input("e: Ref(T)")
                .Input("f: N*int32")
                .Output("g: Ref(string)")
                .Attr("T: type")
                .Attr("N: int >= 2")
                .Attr("Ts: list(type)"),
            R"pb(name: "Test"
                 input_arg { name: "a" type: DT_FLOAT }
                 input_arg { name: "b" type_attr: "T" }
                 input_arg { name: "c" type_attr: "T" number_attr: "N" }
                 input_arg { name: "d" type_list_attr: "Ts" }
                 input_arg { name: "e" type_attr: "T" is_ref: true }
                 input_arg { name: "f" type: DT_INT32 number_attr: "N" }
                 output_arg { name: "g" type: DT_STRING is_ref: true }
                 attr { name: "T" type: "type" }
                 attr { name: "N" type: "int" has_minimum: true minimum: 2 }
                 attr { name: "Ts" type: "list(type)" has_minimum: true minimum: 1 })pb");
}

TEST(OpDefBuilder, SignatureIsInputsAndOutputs) {
  ExpectDef(OpDefBuilder("Test").Attr("N: int").Signature("a: N * float, b: Ref(int32) -> c: int8"),
            R"pb(name: "Test"
                 input_arg { name: "a" type: DT_FLOAT number_attr: "N" }
                 input_arg { name: "b" type: DT_INT32 is_ref: true }
                 output_arg { name: "c" type: DT_INT8 }
                 attr { name: "N" type: "int" has_minimum: true minimum: 1 })pb");
  ExpectDef(OpDefBuilder("Test").Signature("a: float"),
            R"pb(name: "Test"
                 input_arg { name: "a" type: DT_FLOAT })pb");
  ExpectDef(OpDefBuilder("Test").Signature("-> b: float, c: bool"),
            R"pb(name: "Test"
                 output_arg { name: "b" type: DT_FLOAT }
                 output_arg { name: "c" type: DT_BOOL })pb");
}

TEST(OpDefBuilder, AttributesWithDefaults) {
  ExpectDef(OpDefBuilder("Test")
                .Attr("a: string = 'x\\'y'")
                .Attr("b: int >= -1 = 3")
                .Attr("c: float = 1e-3")
                .Attr("d: bool = true")
                .Attr("e: type = DT_INT32")
                .Attr("f: shape = { unknown_rank: true }")
                .Attr("g: list(int) = [1, 2]")
                .Attr("h: list(string) >= 0 = []")
                .Attr("i: {'SAME', 'VALID'} = 'SAME'")
                .Attr("j: {int32, float} = DT_FLOAT")
                .Attr("k: list({half, float}) >= 1")
                .Attr("l: func")
                .Attr("m: quantizedtype"),
            R"pb(name: "Test"
                 attr {
                   name: "a"
                   type: "string"
                   default_value { s: "x'y" }
                 }
                 attr {
                   name: "b"
                   type: "int"
                   has_minimum: true
                   minimum: -1
                   default_value { i: 3 }
                 }
                 attr {
                   name: "c"
                   type: "float"
                   default_value { f: 0.001 }
                 }
                 attr {
                   name: "d"
                   type: "bool"
                   default_value { b: true }
                 }
                 attr {
                   name: "e"
                   type: "type"
                   default_value { type: DT_INT32 }
                 }
                 attr {
                   name: "f"
                   type: "shape"
                   default_value { shape { unknown_rank: true } }
                 }
                 attr {
                   name: "g"
                   type: "list(int)"
                   default_value { list { i: 1 i: 2 } }
                 }
                 attr {
                   name: "h"
                   type: "list(string)"
                   has_minimum: true
                   default_value { list {} }
                 }
                 attr {
                   name: "i"
                   type: "string"
                   allowed_values { list { s: "SAME" s: "VALID" } }
                   default_value { s: "SAME" }
                 }
                 attr {
                   name: "j"
                   type: "type"
                   default_value { type: DT_FLOAT }
                   allowed_values { list { type: DT_INT32 type: DT_FLOAT } }
                 }
                 attr {
                   name: "k"
                   type: "list(type)"
                   has_minimum: true
                   minimum: 1
                   allowed_values { list { type: DT_HALF type: DT_FLOAT } }
                 }
                 attr { name: "l" type: "func" }
                 attr {
                   name: "m"
                   type: "type"
                   allowed_values {
                     list {
                       type: DT_QINT8
                       type: DT_QUINT8
                       type: DT_QINT32
                       type: DT_QINT16
                       type: DT_QUINT16
                     }
                   }
                 })pb");
}

TEST(OpDefBuilder, FlagsAndDoc) {
  const OpDef def = Built(OpDefBuilder("Test")
                              .SetIsStateful()
                              .SetIsCommutative()
                              .SetIsAggregate()
                              .SetAllowsUninitializedInput()
                              .Deprecated(7, "Use Best.")
                              .Doc("Does it. And\nmore."));
  EXPECT_TRUE(def.is_stateful() && def.is_commutative() && def.is_aggregate() &&
              def.allows_uninitialized_input());
  EXPECT_EQ(def.deprecation().version(), 7);
  EXPECT_EQ(def.summary(), "Does it.");
  EXPECT_EQ(def.description(), "And\nmore.");
}

TEST(OpDefBuilder, RefusesBadSpecifications) {
  const OpDefBuilder bad[] = {
      OpDefBuilder("lower"),
      OpDefBuilder(""),
      OpDefBuilder("Has Space"),
      OpDefBuilder("T").Input("a float"),
      OpDefBuilder("T").Input(": float"),
      OpDefBuilder("T").Input("a: "),
      OpDefBuilder("T").Input("a: flaot"),
      OpDefBuilder("T").Input("a: T"),
      OpDefBuilder("T").Input("a: Ref(float"),
      OpDefBuilder("T").Input("a: float more"),
      OpDefBuilder("T").Signature("a: float, -> b: float"),
      OpDefBuilder("T").Signature("a: float -> b: float -> c: float"),
      OpDefBuilder("T").Input("a: N * float"),
      OpDefBuilder("T").Attr("N: int").Input("a: N *"),
      OpDefBuilder("T").Attr("N: float").Input("a: N * int32"),
      OpDefBuilder("T").Attr("N: int").Input("a: N"),
      OpDefBuilder("T").Attr("N: int").Attr("L: list(type)").Input("a: N * L"),
      OpDefBuilder("T").Attr("a"),
      OpDefBuilder("T").Attr("a: what"),
      OpDefBuilder("T").Attr("a: list(int"),
      OpDefBuilder("T").Attr("a: list(list(int))"),
      OpDefBuilder("T").Attr("a: int >= x"),
      OpDefBuilder("T").Attr("a: float >= 1"),
      OpDefBuilder("T").Attr("a: int >= 99999999999999999999"),
      OpDefBuilder("T").Attr("a: int = 'x'"),
      OpDefBuilder("T").Attr("a: int >= 2 = 1"),
      OpDefBuilder("T").Attr("a: bool = maybe"),
      OpDefBuilder("T").Attr("a: {'x', 'y'} = 'z'"),
      OpDefBuilder("T").Attr("a: {int32} = DT_FLOAT"),
      OpDefBuilder("T").Attr("a: {'x', int32}"),
      OpDefBuilder("T").Attr("a: {int32, 'x'}"),
      OpDefBuilder("T").Attr("a: {'x'"),
      OpDefBuilder("T").Attr("a: {}"),
      OpDefBuilder("T").Attr("a: string = 'x"),
      OpDefBuilder("T").Attr("a: shape = { dim"),
      OpDefBuilder("T").Attr("a: list(int) = [1,"),
      OpDefBuilder("T").Attr("a: int").Attr("a: int"),
      OpDefBuilder("T").Attr("a: int").Input("a: float"),
  };
  for (size_t i = 0; i < std::size(bad); ++i) {
    OpRegistration registration;
    const absl::Status status = bad[i].Build(&registration);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << "case " << i;
    EXPECT_FALSE(status.message().empty());
  }
}

TEST(OpRegistry, FindsAndLists) {
  OpRegistry registry;
  registry.Register(OpDefBuilder("B").Output("y: float"));
  registry.Register(OpDefBuilder("A").Output("y: float"));
  EXPECT_EQ(registry.Names(), (std::vector<std::string>{"A", "B"}));
  auto a = registry.LookUp("A");
  ASSERT_TRUE(a.ok());
  EXPECT_EQ((*a)->def->name(), "A");
  EXPECT_EQ(*registry.LookUp("A"), *a);
  registry.Register(OpDefBuilder("C"));  // after the first look-up
  EXPECT_TRUE(registry.LookUp("C").ok());
  EXPECT_EQ(registry.LookUp("D").status().code(), absl::StatusCode::kNotFound);
}

TEST(OpRegistry, TwoDefinitionsOfOneName) {
  OpRegistry registry;
  registry.Register(OpDefBuilder("Same").Output("y: float").Doc("One."));
  registry.Register(OpDefBuilder("Same").Output("y: float").Doc("Two."));
  registry.Register(OpDefBuilder("Other").Output("y: float"));
  registry.Register(OpDefBuilder("Other").Output("y: int32"));
  EXPECT_TRUE(registry.LookUp("Same").ok());
  EXPECT_EQ(registry.LookUp("Other").status().code(), absl::StatusCode::kAlreadyExists);
  registry.Register(OpDefBuilder("Same").Output("y: int32"));
  EXPECT_EQ(registry.LookUp("Same").status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(OpRegistry, BadDefinitionIsReportedWhenLookedUp) {
  OpRegistry registry;
  registry.Register(OpDefBuilder("Bad").Input("x"));
  const absl::Status status = registry.LookUp("Bad").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("Bad"), std::string::npos);
}

TEST(OpRegistry, ManyThreadsLookUp) {
  OpRegistry registry;
  for (int i = 0; i < 50; ++i) {
    registry.Register(OpDefBuilder("Op" + std::to_string(i)).Input("x: float"));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registry] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(registry.LookUp("Op" + std::to_string(i)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe
