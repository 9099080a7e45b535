// Freezing of graphs that are made here: each kind of variable, read in each way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "api/troupe.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Code = absl::StatusCode;

class FreezeTest : public testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = s_.graph()->AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  }
  /// A reference variable with a value.
  Output Reference(const std::string& name, const Tensor& value) {
    const Output variable(Add(NodeSpec("VariableV2", name)
                                  .Attr("dtype", value.type())
                                  .Attr("shape", PartialShape(value.shape()))));
    initializers_.push_back(ops::Assign(s_, variable, Const(s_, value)).node);
    return variable;
  }
  ModelVariable Resource(const std::string& name, const Tensor& value) {
    ModelVariable variable(s_, Const(s_, value), name);
    initializers_.push_back(variable.initializer());
    return variable;
  }
  void Start() {
    ASSERT_TRUE(s_.ok()) << s_.status();
    session_ = *Session::Create(s_.graph());
    ASSERT_TRUE(session_->RunTargets(initializers_).ok());
  }
  /// Freezes `outputs` and expects the frozen graph to give what the session gives.
  GraphDef Check(const std::vector<Output>& outputs, const FeedMap& feeds = {}) {
    std::vector<std::string> names;
    for (const Output& output : outputs) names.push_back(output.name());
    const auto frozen = FreezeGraph(*session_, names);
    EXPECT_TRUE(frozen.ok()) << frozen.status();
    if (!frozen.ok()) return {};
    for (const NodeDef& node : frozen->node()) {
      EXPECT_NE(node.op(), "VarHandleOp");
      EXPECT_NE(node.op(), "VariableV2");
    }
    auto graph = std::make_shared<Graph>();
    const absl::Status imported = ImportGraphDef(*frozen, {}, graph.get());
    EXPECT_TRUE(imported.ok()) << imported;
    const auto other = *Session::Create(graph);
    NamedTensors named;
    for (const auto& [output, value] : feeds) named.emplace_back(output.name(), value);
    std::vector<Tensor> got;
    const absl::Status run = other->Run(named, names, {}, &got);
    EXPECT_TRUE(run.ok()) << run;
    const auto want = session_->Run(feeds, outputs);
    EXPECT_TRUE(want.ok()) << want.status();
    for (size_t i = 0; run.ok() && want.ok() && i < got.size(); ++i) {
      EXPECT_EQ(got[i].ToString(100), (*want)[i].ToString(100)) << names[i];
    }
    return *frozen;
  }
  absl::Status Refused(const Output& output) {
    return FreezeGraph(*session_, {output.name()}).status();
  }

  Scope s_ = Scope::NewRoot();
  std::vector<Node*> initializers_;
  std::unique_ptr<Session> session_;
};

TEST_F(FreezeTest, References) {
  const Output v = Reference("v", Tensor::Vector<float>({1, 2, 3}));
  const Output choose = ops::Placeholder(s_, ElementType::kBool);
  Node* const branches = Add(NodeSpec("RefSwitch", "branches").Input(v).Input(choose));
  const Output same(Add(NodeSpec("RefIdentity", "same").Input(Output(branches, 1))));
  const Output a = ops::Neg(s_, same);
  const Output b = ops::Square(s_, Output(branches, 0));
  const Output merged = ops::Merge(s_, {a, b}).output;
  const Output there = ops::IsVariableInitialized(s_, v);
  Start();
  for (const bool side : {false, true}) {
    Check({merged, ops::Identity(s_, v), there}, {{choose, Tensor::Scalar(side)}});
  }
}

TEST_F(FreezeTest, Resources) {
  const Tensor matrix = Tensor::Vector<float>({0, 1, 2, 3, 4, 5}).Reshaped(Shape({3, 2}));
  const ModelVariable rows = Resource("rows", matrix);
  const Output h = rows.handle();
  const ElementType type = ElementType::kFloat;
  const Output ids = ops::Placeholder(s_, ElementType::kInt64);
  const std::vector<Output> outputs = {
      ops::ResourceGather(s_, h, ids, type),
      ops::ResourceGather(s_, h, Const(s_, Tensor::Vector<int32_t>({1, 1, 0})), type,
                          {.batch_dims = 1}),
      ops::ResourceGatherNd(s_, h, Const(s_, Tensor::Vector<int32_t>({2, 1})), type),
      ops::VariableShape(s_, h),
      ops::VarIsInitializedOp(s_, h),
      ops::ReadVariableOp(s_.WithControlDependencies({ops::NoOp(s_)}), h, type),
      ops::ReadVariableOp(s_, ops::Identity(s_, h), type)};
  Start();
  const GraphDef frozen = Check(outputs, {{ids, Tensor::Vector<int64_t>({2, 0})}});
  for (const NodeDef& node : frozen.node())
    EXPECT_THAT(node.op(), testing::Not(HasSubstr("Resource")));
}

TEST_F(FreezeTest, Loops) {
  const ModelVariable step = Resource("step", Tensor::Scalar(2.5F));
  const Output n = ops::Placeholder(s_, ElementType::kFloat);
  const OutputList loop = WhileLoop(
      s_, {n, step.handle()},
      [](const Scope& s, absl::Span<const Output> vars) { return ops::Less(s, vars[0], 10.0F); },
      [](const Scope& s, absl::Span<const Output> vars) {
        return std::vector<Output>{
            ops::Add(s, vars[0], ops::ReadVariableOp(s, vars[1], ElementType::kFloat)), vars[1]};
      });
  ASSERT_EQ(loop.size(), 2);
  const Output after = ops::ReadVariableOp(s_, loop[1], ElementType::kFloat);
  Start();
  Check({loop[0], after}, {{n, Tensor::Scalar(1.0F)}});
}

TEST_F(FreezeTest, KeepsWhatItIsTold) {
  const ModelVariable a = Resource("a", Tensor::Scalar(1.0F)),
                      b = Resource("b", Tensor::Scalar(2.0F));
  const Output sum = ops::Add(s_.WithDevice("/device:CPU:0"), a.value(), b.value());
  Start();
  FreezeOptions options;
  options.keep = {a.handle().node->name()};
  options.clear_devices = true;
  const auto frozen = FreezeGraph(*session_, {sum.name()}, options);
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  int variables = 0, constants = 0;
  for (const NodeDef& node : frozen->node()) {
    variables += node.op() == "VarHandleOp" ? 1 : 0;
    constants += node.op() == "Const" ? 1 : 0;
    EXPECT_EQ(node.device(), "");
  }
  EXPECT_EQ(variables, 1);
  EXPECT_EQ(constants, 1);
}

TEST_F(FreezeTest, RefusesWhatWrites) {
  const Output v = Reference("v", Tensor::Scalar(1.0F));
  const ModelVariable r = Resource("r", Tensor::Scalar(1.0F));
  const Output assigned = ops::AssignAdd(s_, v, 1.0F);
  const Output after = ops::Identity(s_.WithControlDependencies({r.AssignAdd(s_, 1.0F)}), v);
  Start();
  for (const Output& output : {assigned, after}) {
    const absl::Status status = Refused(output);
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("writes a variable"));
  }
  EXPECT_EQ(Refused(Output(v.node, 0)).code(), Code::kOk);
}

}  // namespace
}  // namespace troupe
