// Element-wise kernels that one launch computes: the same bits as one by one, whatever the types,
// shapes and outputs, and fewer of them.
#include <gmock/gmock.h>

#include <map>

#include "api/troupe.h"
#include "graph/protos/stats.pb.h"
#include "kernels/common/broadcast.h"
#include "tests/benchmarks/gpu_graphs.h"
#include "tests/cuda_on_host/against_cpu.h"
#include "tests/how_many.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;
using enum ElementType;

constexpr char kGpu[] = "/device:GPU:0";

const char* const kUnary[] = {"Abs",      "Ceil",  "Elu",    "Erf",     "Exp",   "Expm1",
                              "Floor",    "Inv",   "Log",    "Log1p",   "Neg",   "Relu",
                              "Relu6",    "Rsqrt", "Selu",   "Sigmoid", "Sign",  "Softplus",
                              "Softsign", "Sqrt",  "Square", "Tanh",    "Round", "Reciprocal"};
const char* const kBinary[] = {"Add",
                               "AddV2",
                               "Sub",
                               "Mul",
                               "Div",
                               "RealDiv",
                               "DivNoNan",
                               "Maximum",
                               "Minimum",
                               "Pow",
                               "SquaredDifference"};
const char* const kGradients[] = {"EluGrad",   "InvGrad",      "Relu6Grad",   "ReluGrad",
                                  "RsqrtGrad", "SeluGrad",     "SigmoidGrad", "SoftplusGrad",
                                  "SqrtGrad",  "SoftsignGrad", "TanhGrad"};

const char* const kComparisons[] = {"Equal",     "NotEqual", "Less",
                                    "LessEqual", "Greater",  "GreaterEqual"};

class Fused : public ::testing::Test {
 protected:
  Fused() : graph_(std::make_shared<Graph>()) {}
  void SetUp() override { LoadCards(); }

  Output Add(NodeSpec spec) {
    spec.Device(kGpu);
    const absl::StatusOr<Node*> node = graph_->AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? Output(*node) : Output();
  }
  std::string Name() { return StrCat("n", next_++); }
  /// What is fed this value.
  Output Feed(const Tensor& value) {
    const Output fed = Add(NodeSpec("Placeholder", Name()).Attr("dtype", value.type()));
    feeds_.emplace_back(fed, value);
    return fed;
  }
  Output Call(const std::string& op, const std::vector<Output>& inputs) {
    NodeSpec spec(op, Name());
    for (const Output& input : inputs) spec.Input(input);
    return Add(spec);
  }

  Output Cast(const Output& value, ElementType to) {
    return Add(NodeSpec("Cast", Name()).Input(value).Attr("DstT", to));
  }

  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Output>& fetches, bool optimize,
                                          std::map<std::string, int>* ops = nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        const auto session,
        Session::Create(graph_, {.devices = {{"GPU", {.count = 1}}}, .optimize = optimize}));
    std::vector<Tensor> values;
    RunMetadata metadata;
    FeedMap feeds = feeds_;
    TROUPE_ASSIGN_OR_RETURN(values, session->Run(feeds, fetches, {}, {.trace = true}, &metadata));
    for (const auto& device : metadata.step_stats().dev_stats()) {
      if (!device.device().ends_with(kGpu)) continue;  // Its streams.
      for (const auto& node : device.node_stats()) {
        if (ops != nullptr) ++(*ops)[node.timeline_label()];
      }
    }
    return values;
  }
  /// Says how many fused kernels there were.
  int Compare(const std::vector<Output>& fetches) {
    std::map<std::string, int> ops;
    const auto apart = Run(fetches, false), together = Run(fetches, true, &ops);
    EXPECT_TRUE(apart.ok()) << apart.status();
    EXPECT_TRUE(together.ok()) << together.status();
    if (!apart.ok() || !together.ok()) return 0;
    for (size_t i = 0; i < fetches.size(); ++i) {
      EXPECT_TRUE(SameValues((*together)[i], (*apart)[i], {}))
          << fetches[i].node->name() << " (" << fetches[i].node->op() << ")";
    }
    int fused = 0;
    for (const auto& [label, count] : ops) {
      if (label.find(" = Fused") != std::string::npos) fused += count;
    }
    return fused;
  }

  std::shared_ptr<Graph> graph_;
  FeedMap feeds_;
  int next_ = 0;
};

TEST_F(Fused, EachFunction) {
  for (const ElementType type : {kFloat, kHalf, kBfloat16, kDouble}) {
    std::vector<Output> fetches;
    int count = 0;
    for (const char* op : kUnary) {
      const Output x = Feed(Numbers(type, Shape({33}), 1 + static_cast<uint64_t>(count)));
      fetches.push_back(Call("Neg", {Call(op, {x})}));
      ++count;
    }
    for (const char* op : kBinary) {
      const Output x = Feed(Numbers(type, Shape({9, 8}), 100 + static_cast<uint64_t>(count)));
      const Output y = Feed(Numbers(type, Shape({8}), 200 + static_cast<uint64_t>(count)));
      fetches.push_back(Call("Neg", {Call(op, {x, y})}));
      fetches.push_back(Call("Neg", {Call(op, {y, x})}));
      count += 2;
    }
    for (const char* op : kGradients) {
      const Output x = Feed(Numbers(type, Shape({5, 7}), 300 + static_cast<uint64_t>(count)));
      const Output y = Feed(Numbers(type, Shape({5, 7}), 400 + static_cast<uint64_t>(count)));
      fetches.push_back(Call("Neg", {Call(op, {x, y})}));
      ++count;
    }
    for (const char* op : kComparisons) {
      const Output x = Feed(Numbers(type, Shape({5, 7}), 500 + static_cast<uint64_t>(count)));
      const Output y = Feed(Numbers(type, Shape({7}), 600 + static_cast<uint64_t>(count)));
      const Output holds = Call(op, {x, Call("Maximum", {x, y})});
      fetches.push_back(holds);
      fetches.push_back(Call("SelectV2", {holds, y, x}));
      ++count;
    }
    EXPECT_EQ(Compare(fetches), count) << ElementTypeName(type);
  }
}

TEST_F(Fused, SumsAreRoundedOnce) {
  for (const ElementType type : {kHalf, kBfloat16, kFloat, kDouble}) {
    std::vector<Output> fetches;
    for (const int n : {1, 2, 3, 4, 5, 6, 7, 9, 11}) {
      std::vector<Output> inputs;
      for (int i = 0; i < n; ++i) {
        inputs.push_back(Call("Neg", {Feed(Numbers(type, Shape({41}), 10 * n + i))}));
      }
      fetches.push_back(Call("Abs", {Add(NodeSpec("AddN", Name()).Input(inputs))}));
    }
    EXPECT_EQ(Compare(fetches), 9) << ElementTypeName(type);
    // More than operands, though not more than steps.
    const Output x = Call("Neg", {Feed(Numbers(type, Shape({41}), 100))}),
                 y = Call("Neg", {Feed(Numbers(type, Shape({41}), 101))});
    std::vector<Output> many(40, x);
    for (size_t i = 0; i < many.size(); i += 3) many[i] = y;
    EXPECT_EQ(Compare({Call("Abs", {Add(NodeSpec("AddN", Name()).Input(many))})}), 1);
  }
}

// Each of them takes operands that differ in two, all together in more than it alone could.
TEST_F(Fused, ManyDimensions) {
  const int rank = 12;
  Output sum = Feed(Numbers(kFloat, Shape(std::vector<int64_t>(rank, 2)), 1));
  for (int d = 0; d < rank; ++d) {
    std::vector<int64_t> dims(rank, 2);
    dims[d] = 1;
    sum = Call("Add", {sum, Feed(Numbers(kFloat, Shape(dims), 2 + static_cast<uint64_t>(d)))});
  }
  EXPECT_EQ(Compare({sum}), 1);
}

TEST_F(Fused, TypesMayDiffer) {
  const Output x = Feed(Numbers(kFloat, Shape({100}), 1)),
               h = Feed(Numbers(kHalf, Shape({100}), 2));
  const Output rounded = Call("Mul", {Cast(x, kHalf), h});
  const Output wide = Call("Add", {Cast(rounded, kFloat), x});
  EXPECT_EQ(Compare({rounded, wide, Cast(Call("Neg", {wide}), kBfloat16)}), 1);
  // What is computed in double stands alone.
  EXPECT_EQ(Compare({Call("Neg", {Cast(x, kDouble)})}), 0);
}

TEST_F(Fused, Conditions) {
  for (const ElementType type : {kFloat, kHalf, kBfloat16, kDouble}) {
    const Output x = Feed(Numbers(type, Shape({3, 41}), 1)),
                 y = Feed(Numbers(type, Shape({41}), 2)), one = Feed(Numbers(type, Shape(), 3));
    const Output less = Call("Less", {x, y});
    // A dropout's mask; what is not a number is true.
    EXPECT_EQ(Compare({less, Call("Mul", {Cast(less, type), x})}), 1);
    EXPECT_EQ(Compare({Call("SelectV2", {Cast(x, kBool), y, one})}), 1);
  }
  const Output x = Feed(Numbers(kFloat, Shape({7, 9}), 1)), p = Feed(Numbers(kBool, Shape({9}), 2)),
               q = Feed(Numbers(kBool, Shape({7, 1}), 3));
  const Output both = Call("LogicalAnd", {p, q}), any = Call("LogicalOr", {q, Cast(x, kBool)}),
               neither = Call("LogicalNot", {Call("LogicalOr", {both, any})});
  EXPECT_EQ(Compare({both, neither, Call("SelectV2", {any, x, Call("Neg", {x})})}), 1);
}

TEST_F(Fused, Biases) {
  const Output x = Feed(Numbers(kFloat, Shape({6, 4, 5}), 1)),
               bias = Feed(Numbers(kFloat, Shape({5}), 2));
  const auto add = [&](const Output& value, const char* format, const Output& biases) {
    return Add(NodeSpec("BiasAdd", Name()).Input(value).Input(biases).Attr("data_format", format));
  };
  EXPECT_EQ(Compare({Call("Relu", {add(x, "NHWC", bias)})}), 1);
  const Output channels = Feed(Numbers(kFloat, Shape({4}), 2));
  EXPECT_EQ(Compare({Call("Relu", {add(x, "NCHW", channels)})}), 0);
}

// Those of other shapes than the last one's need a launch each.
TEST_F(Fused, OutputsOfSeveralShapes) {
  const Output row = Feed(Numbers(kFloat, Shape({7}), 1)),
               column = Feed(Numbers(kFloat, Shape({5, 1}), 2)),
               scalar = Feed(Numbers(kFloat, Shape(), 3)),
               whole = Feed(Numbers(kFloat, Shape({3, 5, 7}), 4)),
               none = Feed(Numbers(kFloat, Shape({3, 0, 7}), 5));
  const Output a = Call("Add", {row, scalar}), b = Call("Mul", {a, column}),
               c = Call("Sub", {b, whole}), d = Call("Neg", {b}), e = Call("Square", {scalar}),
               f = Call("Add", {e, d}), g = Call("Mul", {row, none});
  EXPECT_EQ(Compare({a, b, c, d, e, f, g, Call("Neg", {g})}), 2);
  EXPECT_EQ(Compare({c}), 1);
}

// What one node takes over another one may still have to read.
TEST_F(Fused, BuffersAreTakenOver) {
  std::vector<Output> fetches;
  const int64_t n = 1000;
  const Output x = Call("MatMul", {Feed(Numbers(kFloat, Shape({n, 1}), 1, Values::kModerate)),
                                   Feed(Numbers(kFloat, Shape({1, 1}), 2, Values::kModerate))});
  const Output y = Call("MatMul", {Feed(Numbers(kFloat, Shape({n, 1}), 3, Values::kModerate)),
                                   Feed(Numbers(kFloat, Shape({1, 1}), 4, Values::kModerate))});
  const Output a = Call("Add", {x, y}), b = Call("Mul", {a, x}), c = Call("Sub", {y, b}),
               d = Call("Mul", {c, y});
  EXPECT_EQ(Compare({a, b, d}), 1);
}

TEST_F(Fused, ErrorsNameTheNode) {
  const Output x = Feed(Numbers(kFloat, Shape({5}), 1)), y = Feed(Numbers(kFloat, Shape({6}), 2));
  Output sum = Add(NodeSpec("Add", "the_sum").Input(x).Input(y));
  const Output last = Call("Neg", {sum});
  const absl::Status apart = Run({last}, false).status(), together = Run({last}, true).status();
  EXPECT_EQ(together.code(), apart.code());
  EXPECT_THAT(together.message(), HasSubstr("the_sum (Add)"));
  EXPECT_THAT(together.message(), HasSubstr("[5]"));
  EXPECT_THAT(together.message(), HasSubstr("[6]"));
  const Output z = Feed(Numbers(kFloat, Shape({5, 1}), 3));
  const Output gradient = Call("Neg", {Call("TanhGrad", {x, z})});
  EXPECT_EQ(Run({gradient}, true).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Fused, InLoopsAndBranches) {
  const Scope root = Scope::NewRoot().WithDevice(kGpu);
  graph_ = root.graph();
  const Output x = Feed(Numbers(kFloat, Shape({3, 5}), 1, Values::kModerate));
  const auto cell = [](const Scope& s, const Output& c, const Output& h) {
    return OutputList{ops::Add(s, ops::Mul(s, c, ops::Sigmoid(s, h)), ops::Tanh(s, h)),
                      ops::Mul(s, ops::Tanh(s, c), ops::Sigmoid(s, ops::Neg(s, h)))};
  };
  const OutputList end = WhileLoop(
      root, {ops::Const(root, 0), x, x},
      [](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], 5); },
      [&](const Scope& s, absl::Span<const Output> v) {
        const OutputList next = cell(s, v[1], v[2]);
        return OutputList{ops::Add(s, v[0], 1), next[0], next[1]};
      });
  const Output positive = ops::Greater(root, ops::Sum(root, end[1], {0, 1}), 0.0f);
  const OutputList chosen = Cond(
      root, positive, [&](const Scope& s) { return cell(s, end[1], end[2]); },
      [&](const Scope& s) { return cell(s, end[2], end[1]); });
  const OutputList gradients =
      Gradients(root, {ops::Sum(root, ops::Square(root, end[1]), {0, 1})}, {x});
  ASSERT_TRUE(root.ok()) << root.status();
  const int fused = Compare({end[1], end[2], chosen[0], chosen[1], gradients[0]});
  EXPECT_GE(fused, 5 + 1 + 5);  // A trace has a line for each iteration.
}

// Weights are read within the step, the counter of iterations is on the host: none of that keeps
// the nodes of a cell, or of its gradient, apart.
TEST_F(Fused, CellsOfAnLstm) {
  const Scope root = Scope::NewRoot();
  constexpr int kSteps = 4;
  const benchmarks::Work work =
      benchmarks::TrainLstm(root.WithDevice(kGpu), kSteps, 2, 8, /*block=*/false);
  Node* const init = GlobalVariablesInitializer(root);
  ASSERT_TRUE(root.ok()) << root.status();
  const auto session = Session::Create(root.graph(), {.devices = {{"GPU", {.count = 1}}}});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->RunTargets({init}).ok());
  RunMetadata metadata;
  const auto run = (*session)->Run(work.feeds, {}, work.targets, {.trace = true}, &metadata);
  ASSERT_TRUE(run.ok()) << run.status();
  std::map<std::string, int> ops;
  for (const auto& device : metadata.step_stats().dev_stats()) {
    if (!device.device().ends_with("/stream:all")) continue;
    for (const auto& node : device.node_stats()) {
      ++ops[node.timeline_label().substr(node.timeline_label().rfind(' ') + 1)];
    }
  }
  EXPECT_EQ(ops["Fused"], 2 * kSteps);
  for (const char* op : {"Sigmoid", "Tanh", "SigmoidGrad", "TanhGrad", "AddN"}) {
    EXPECT_EQ(ops[op], 0) << op;
  }
}

// What is dequeued has been enqueued by the same step.
TEST_F(Fused, NothingWaitsForItself) {
  const Scope root = Scope::NewRoot();
  const Scope card = root.WithDevice(kGpu);
  graph_ = root.graph();
  const Output x = Feed(Numbers(kFloat, Shape({9}), 1, Values::kModerate));
  const Output a = ops::Tanh(card, ops::Neg(card, x));
  const Output queue = ops::FIFOQueueV2(card, {kFloat});
  Node* const enqueue = ops::QueueEnqueueV2(card, queue, {a});
  const Output taken = ops::QueueDequeueV2(card, queue, {kFloat})[0];
  const Output b = ops::Mul(card, ops::Add(card, a, taken), a);
  ASSERT_TRUE(root.ok()) << root.status();
  const auto session = Session::Create(graph_, {.devices = {{"GPU", {.count = 1}}}});
  ASSERT_TRUE(session.ok()) << session.status();
  Node* const targets[] = {enqueue};
  const auto value = (*session)->Run(feeds_, {b}, targets, {.timeout = absl::Seconds(30)});
  EXPECT_TRUE(value.ok()) << value.status();
}

TEST_F(Fused, RandomGraphs) {
  int fused = 0;
  const int seeds = HowMany("TROUPE_SEEDS", 60, 20);
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    graph_ = std::make_shared<Graph>();
    feeds_.clear();
    const ElementType types[] = {kFloat, kHalf, kBfloat16, kDouble};
    const ElementType type = types[below(4)];
    const int64_t a = 1 + static_cast<int64_t>(below(5)),
                  b = 4 * (1 + static_cast<int64_t>(below(3))),
                  c = 1 + static_cast<int64_t>(below(9));
    const Shape shapes[] = {Shape({a, c, b}), Shape({b}),       Shape({c, 1}),   Shape(),
                            Shape({a, 1, b}), Shape({a, c, b}), Shape({1, c, b})};
    std::vector<Output> values, conditions;
    std::vector<Shape> known, of_conditions;
    for (int i = 0; i < 5; ++i) {
      const Shape& shape = shapes[below(std::size(shapes))];
      values.push_back(Feed(Numbers(type, shape, random(), Values::kModerate)));
      known.push_back(shape);
    }
    conditions.push_back(Feed(Numbers(kBool, shapes[1], random())));
    of_conditions.push_back(shapes[1]);
    std::vector<Output> fetches;
    const size_t calls = 5 + below(60);
    for (size_t i = 0; i < calls; ++i) {
      const auto pick = [&] {
        return below(2) == 0 ? values.size() - 1 - below(4) : below(values.size());
      };
      const size_t x = pick(), y = pick();
      const size_t kind = below(26);
      const size_t p = below(conditions.size()), q = below(conditions.size());
      if (kind >= 23) {
        const Shape branches = *BroadcastShapes(known[x], known[y]);
        values.push_back(Call("SelectV2", {conditions[p], values[x], values[y]}));
        known.push_back(*BroadcastShapes(of_conditions[p], branches));
      } else if (kind >= 20) {
        if (kind == 20) {
          conditions.push_back(Call("LogicalOr", {conditions[p], conditions[q]}));
          of_conditions.push_back(*BroadcastShapes(of_conditions[p], of_conditions[q]));
        } else {
          const char* const op = kComparisons[below(std::size(kComparisons))];
          conditions.push_back(Call(op, {values[x], values[y]}));
          of_conditions.push_back(*BroadcastShapes(known[x], known[y]));
        }
        if (below(8) == 0) fetches.push_back(conditions.back());
        continue;
      } else if (kind < 8) {
        values.push_back(Call(kUnary[below(std::size(kUnary))], {values[x]}));
        known.push_back(known[x]);
      } else if (kind < 17) {
        values.push_back(Call(kBinary[below(std::size(kBinary))], {values[x], values[y]}));
        known.push_back(*BroadcastShapes(known[x], known[y]));
      } else if (kind < 19) {
        if (!(known[x] == known[y])) continue;
        values.push_back(Call(kGradients[below(std::size(kGradients))], {values[x], values[y]}));
        known.push_back(known[x]);
      } else {
        values.push_back(Call("Softmax", {Call("Identity", {values[x]})}));
        if (known[x].rank() == 0) {
          values.pop_back();
          continue;
        }
        known.push_back(known[x]);
      }
      if (below(12) == 0) fetches.push_back(values.back());
    }
    fetches.push_back(values.back());
    SCOPED_TRACE(StrCat("seed ", seed));
    fused += Compare(fetches);
    if (HasFailure()) return;
  }
  EXPECT_GT(fused, seeds);
}

}  // namespace
}  // namespace troupe::testing
