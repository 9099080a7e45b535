// Gradients through loops and branches, and theirs.
#include "devices/allocator.h"
#include "tests/graph/gradients/flow_gradient_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;

/// x of some rank, summed.
Output SumAll(const Scope& s, Output x) {
  return ops::Sum(s, x, ops::Range(s, 0, ops::Rank(s, x), 1));
}

/// A loop of n iterations with one variable beside the counter.
Output Repeat(const Scope& s, const Input& n, Output start,
              const std::function<Output(const Scope&, Output i, Output v)>& body,
              const WhileOptions& options = {}) {
  const Output limit = n.ToOutput(s);
  const Outputs end = WhileLoop(
      s, {0, start}, [&](const Scope& t, Variables v) { return ops::Less(t, v[0], limit); },
      [&](const Scope& t, Variables v) {
        return Outputs{ops::Add(t, v[0], 1), body(t, v[0], v[1])};
      },
      options);
  return end.empty() ? Output() : end[1];
}

using LoopGradient = FlowGradientTest;

TEST_F(LoopGradient, Power) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return Repeat(s, 4, xs[0],
                      [](const Scope& t, Output, Output v) { return ops::Mul(t, v, v); });
      },
      {{}}, 3);
}

TEST_F(LoopGradient, InvariantsAddUp) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return SumAll(s, Repeat(s, 5, xs[0], [&](const Scope& t, Output, Output v) {
                        return ops::Tanh(t, ops::Add(t, ops::MatMul(t, v, xs[1]), xs[2]));
                      }));
      },
      {{2, 3}, {3, 3}, {3}});
}

TEST_F(LoopGradient, NoIteration) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return Repeat(s, 0, ops::Square(s, xs[0]),
                      [&](const Scope& t, Output, Output v) { return ops::Mul(t, v, xs[1]); });
      },
      {{}, {}});
}

TEST_F(LoopGradient, LoopsInLoops) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return Repeat(s, 3, xs[0], [&](const Scope& t, Output i, Output v) {
          // As many iterations as the outer loop has had.
          Output inner = Repeat(t, i, v, [&](const Scope& u, Output, Output w) {
            return ops::Sin(u, ops::Mul(u, w, ops::Add(u, v, xs[1])));
          });
          return ops::Mul(t, inner, ops::Exp(t, v));
        });
      },
      {{}, {}});
}

TEST_F(LoopGradient, BranchesInLoops) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return Repeat(s, 5, xs[0], [&](const Scope& t, Output i, Output v) {
          Output odd = ops::Equal(t, ops::FloorMod(t, i, 2), 1);
          return Cond(
              t, odd, [&](const Scope& u) { return ops::Mul(u, ops::Sin(u, v), xs[1]); },
              [&](const Scope& u) { return ops::Add(u, ops::Exp(u, v), xs[0]); });
        });
      },
      {{}, {}});
}

TEST_F(LoopGradient, BranchesInBranchesInLoopsInLoops) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return Repeat(s, 3, xs[0], [&](const Scope& t, Output i, Output v) {
          return Repeat(t, 3, v, [&](const Scope& u, Output j, Output w) {
            return Cond(
                u, ops::Less(u, i, j),
                [&](const Scope& p) {
                  return Cond(
                      p, ops::Less(p, j, 2), [&](const Scope& q) { return ops::Sin(q, w); },
                      [&](const Scope& q) { return ops::Mul(q, w, ops::Mul(q, v, xs[1])); });
                },
                [&](const Scope& p) { return ops::Mul(p, w, ops::Cos(p, w)); });
          });
        });
      },
      {{}, {}});
}

TEST_F(LoopGradient, ALoopInABranch) {
  for (const bool taken : {true, false}) {
    Output p = ops::Placeholder(s_, ElementType::kBool);
    Check(
        [&](const Scope& s, const Outputs& xs) {
          return Cond(
              s, p,
              [&](const Scope& t) {
                return Repeat(t, 3, ops::Exp(t, xs[0]), [&](const Scope& u, Output, Output v) {
                  return ops::Sin(u, ops::Mul(u, v, xs[1]));
                });
              },
              [&](const Scope& t) { return ops::Square(t, xs[0]); });
        },
        {{}, {}}, 2, {{p, Tensor::Scalar(taken)}});
  }
}

TEST_F(LoopGradient, ADataDependentEnd) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return WhileLoop(
            s, {xs[0], ops::Add(s, ops::Square(s, xs[1]), 1.5)},
            [](const Scope& t, Variables v) { return ops::Less(t, ops::Abs(t, v[0]), 50.0); },
            [](const Scope& t, Variables v) {
              return Outputs{ops::Mul(t, v[0], v[1]), ops::Add(t, v[1], 0.25)};
            })[0];
      },
      {{}, {}});
}

TEST_F(LoopGradient, VariablesThatTradePlaces) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return WhileLoop(
            s, {0, xs[0], xs[1], 2.0},
            [](const Scope& t, Variables v) { return ops::Less(t, v[0], 5); },
            [](const Scope& t, Variables v) {
              return Outputs{ops::Add(t, v[0], 1), v[2], ops::Mul(t, v[1], v[3]), v[3]};
            })[2];
      },
      {{}, {}});
}

TEST_F(LoopGradient, GrowingShapes) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        WhileOptions options;
        options.shape_invariants = {PartialShape(Shape()), PartialShape({-1, 2})};
        return SumAll(
            s, Repeat(
                   s, 3, xs[0],
                   [&](const Scope& t, Output, Output v) {
                     return ops::Concat(
                         t, 0,
                         {ops::Square(t, v),
                          ops::Reshape(t, xs[1], Const(t, Tensor::Vector<int32_t>({1, 2})))});
                   },
                   options));
      },
      {{2, 2}, {2}});
}

TEST_F(LoopGradient, TensorArrays) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        Output rows = Scan(
            s,
            [&](const Scope& t, Output sum, Output row) {
              return ops::Mul(t, ops::Add(t, sum, row), xs[1]);
            },
            xs[0], xs[1]);
        return SumAll(s, ops::Square(s, rows));
      },
      {{4, 2}, {2}}, 1);
}

/// The sum of what a loop writes into an array: v c^k.
Output SumOfPowers(const Scope& s, Output v, Output c, int32_t n) {
  TensorArray array(s, n, ElementType::kDouble);
  const Outputs end = WhileLoop(
      s, {0, v, array.flow()}, [&](const Scope& t, Variables u) { return ops::Less(t, u[0], n); },
      [&](const Scope& t, Variables u) {
        Output next = ops::Mul(t, ops::Sin(t, u[1]), c);
        TensorArray written = array.WithFlow(u[2]).Write(t, u[0], next);
        return Outputs{ops::Add(t, u[0], 1), next, written.flow()};
      });
  if (end.empty()) return Output();
  return ops::Add(s, ops::Sum(s, array.WithFlow(end[2]).Stack(s), 0), end[1]);
}

TEST_F(LoopGradient, ArraysInLoops) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return Repeat(s, 3, xs[0], [&](const Scope& t, Output, Output v) {
          return SumOfPowers(t, v, ops::Mul(t, xs[1], v), 2);
        });
      },
      {{}, {}}, 3);
}

TEST_F(LoopGradient, ArraysInBranchesInLoops) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        return Repeat(s, 4, xs[0], [&](const Scope& t, Output i, Output v) {
          return Cond(
              t, ops::Equal(t, ops::FloorMod(t, i, 2), 1),
              [&](const Scope& u) { return SumOfPowers(u, v, ops::Mul(u, xs[1], v), 3); },
              [&](const Scope& u) { return ops::Mul(u, v, ops::Cos(u, v)); });
        });
      },
      {{}, {}}, 3);
}

TEST_F(LoopGradient, LoopsOneAfterTheOther) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        Output a =
            Repeat(s, 3, xs[0], [](const Scope& t, Output, Output v) { return ops::Sin(t, v); });
        return Repeat(s, 2, a, [&](const Scope& t, Output, Output v) {
          return ops::Mul(t, v, ops::Add(t, a, xs[0]));
        });
      },
      {{}});
}

TEST_F(LoopGradient, OnlyWhatIsNeededIsSaved) {
  Output x = Placeholder({3}), w = Placeholder({3});
  Output y = Repeat(s_, 4, x, [&](const Scope& t, Output, Output v) {
    // Addition needs nothing, the product by w needs only w, which is the same in each iteration.
    return ops::Add(t, ops::Mul(t, ops::Add(t, v, 1.0), ops::Neg(t, w)), ops::Add(t, v, w));
  });
  Gradients({y}, {x});
  EXPECT_EQ(Count("StackV2"), 0);
  // The gradient by w needs v + 1.
  Gradients({y}, {w});
  EXPECT_EQ(Count("StackV2"), 1);
}

TEST_F(LoopGradient, CountersAreNotSaved) {
  Output x = Placeholder(Shape({9}));
  const Outputs end = WhileLoop(
      s_, {1, D(s_, 1), int64_t{3}},
      [](const Scope& t, Variables v) { return ops::Less(t, v[0], 5); },
      [&](const Scope& t, Variables v) {
        // x[1] .. x[4], and x[3], x[5], ...
        Output row = ops::Add(t, ops::Gather(t, x, v[0]), ops::Gather(t, x, v[2]));
        return Outputs{ops::Add(t, v[0], 1), ops::Add(t, v[1], row), ops::Add(t, v[2], int64_t{1})};
      });
  ASSERT_TRUE(s_.ok()) << s_.status();
  const FeedMap feeds = {{x, Values({9}, 1)}};
  const Output all = Gradients({end[1]}, {x})[0];
  EXPECT_EQ(Count("StackV2"), 0);
  EXPECT_THAT(Run({all}, feeds)[0].unchecked_values<double>(),
              testing::ElementsAre(0, 1, 1, 2, 2, 1, 1, 0, 0));
  GradientOptions last;
  last.max_back_iterations = 2;
  EXPECT_THAT(Run(Gradients({end[1]}, {x}, last), feeds)[0].unchecked_values<double>(),
              testing::ElementsAre(0, 0, 0, 1, 1, 1, 1, 0, 0));
}

TEST_F(LoopGradient, BatchNormalisationTwice) {
  // Its second derivative is differentiation within the backward loop.
  Output x = ops::Placeholder(s_, ElementType::kFloat, {.shape = Shape({2, 2, 2, 3})});
  Output scale = Const(s_, Tensor::Vector<float>({1, 2, 3}));
  Output none = Const(s_, Tensor::Vector<float>({}));
  auto normal = [&](const Scope& s, Output v) {
    return ops::Square(s, ops::FusedBatchNormV3(s, v, scale, scale, none, none).y);
  };
  Output direct = normal(s_, x);
  Output looped = Repeat(s_, 1, x, [&](const Scope& t, Output, Output v) { return normal(t, v); });
  Tensor at = Tensor::Uninitialized(ElementType::kFloat, Shape({2, 2, 2, 3}));
  const Tensor numbers = Values({2, 2, 2, 3}, 4);
  for (int i = 0; i < 24; ++i) {
    at.mutable_data<float>()[i] = static_cast<float>(numbers.unchecked_data<double>()[i]);
  }
  Outputs seconds;
  for (const Output& y : {direct, looped}) {
    Output first = Gradients({y}, {x})[0];
    seconds.push_back(Gradients({ops::Square(s_, first)}, {x})[0]);
  }
  const std::vector<Tensor> values = Run(seconds, {{x, at}});
  for (int i = 0; i < 24; ++i) {
    EXPECT_FLOAT_EQ(values[1].unchecked_data<float>()[i], values[0].unchecked_data<float>()[i]);
  }
}

TEST_F(LoopGradient, ShapesAreSavedNotValues) {
  Output x = ops::Placeholder(s_, ElementType::kDouble, {.shape = PartialShape({-1, 2})});
  WhileOptions options;
  options.shape_invariants = {PartialShape(Shape()), PartialShape({-1, 2})};
  Output y = Repeat(
      s_, 3, x, [&](const Scope& t, Output, Output v) { return ops::Add(t, v, ops::Sum(t, v, 0)); },
      options);
  Gradients({y}, {x});
  for (const Node* node : s_.graph()->nodes()) {
    if (node->op() != "StackPushV2") continue;
    EXPECT_EQ(node->input(1).type(), ElementType::kInt32) << node->name();
  }
}

TEST_F(LoopGradient, TheLastIterations) {
  Output x = Placeholder(Shape()), w = Placeholder(Shape());
  // v becomes v * w: dy/dw through the last k of n iterations is k w^(n-1) x.
  Output y = Repeat(s_, 6, x, [&](const Scope& t, Output, Output v) { return ops::Mul(t, v, w); });
  const FeedMap feeds = {{x, Tensor::Scalar(3.0)}, {w, Tensor::Scalar(2.0)}};
  for (const int k : {1, 2, 5, 6, 7, 100}) {
    SCOPED_TRACE(k);
    GradientOptions options;
    options.max_back_iterations = k;
    const Outputs grads = Gradients({y}, {x, w}, options);
    const std::vector<Tensor> values = Run(grads, feeds);
    EXPECT_EQ(values[0].unchecked_scalar<double>(), k < 6 ? 0 : 64);
    EXPECT_EQ(values[1].unchecked_scalar<double>(), std::min(k, 6) * 32 * 3.0);
  }
  GradientOptions negative;
  negative.max_back_iterations = -1;
  std::vector<Output> grads;
  EXPECT_EQ(AddSymbolicGradients({y}, {x}, {}, &grads, negative).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LoopGradient, TheLastIterationsOfLoopsInLoops) {
  Output x = Placeholder(Shape()), w = Placeholder(Shape());
  // Three times: a loop of three iterations by w, in branches, and a product by w.
  Output y = Repeat(s_, 3, x, [&](const Scope& t, Output, Output v) {
    Output inner = Repeat(t, 3, v, [&](const Scope& u, Output j, Output z) {
      return Cond(
          u, ops::Less(u, j, 2), [&](const Scope& p) { return ops::Mul(p, z, w); },
          [&](const Scope& p) { return ops::Mul(p, ops::Mul(p, w, w), z); });
    });
    return ops::Mul(t, inner, w);
  });
  const FeedMap feeds = {{x, Tensor::Scalar(3.0)}, {w, Tensor::Scalar(2.0)}};
  // w occurs 5 times in each outer iteration, 15 times in all: of degree d by w.
  GradientOptions options;
  options.max_back_iterations = 3;
  std::vector<Tensor> all = Run(Gradients({y}, {w}, options), feeds);
  EXPECT_EQ(all[0].unchecked_scalar<double>(), 15 * 3 * std::pow(2, 14));
  // Two outer iterations count; the inner loop of the later one is cut after its last two
  // iterations, so that only the product after it and those (3 w) are left.
  options.max_back_iterations = 2;
  std::vector<Tensor> some = Run(Gradients({y}, {w}, options), feeds);
  EXPECT_EQ(some[0].unchecked_scalar<double>(), 4 * 3 * std::pow(2, 14));
}

TEST_F(LoopGradient, MemoryIsWhatTheBackwardLoopNeeds) {
  // Tensors of 1/2 MB, 200 iterations: 100 MB if every iteration saves one.
  constexpr int64_t kTensor = 256 * 256 * 8;
  constexpr int32_t kIterations = 200;
  Output x = Placeholder(Shape({256, 256})), w = Placeholder(Shape());
  Output linear = Repeat(s_, kIterations, x, [&](const Scope& t, Output, Output v) {
    return ops::Mul(t, ops::Add(t, v, x), w);
  });
  Output curved =
      Repeat(s_, kIterations, x, [&](const Scope& t, Output, Output v) { return ops::Tanh(t, v); });
  GradientOptions last;
  last.max_back_iterations = 5;
  const Output of_linear = Gradients({linear}, {x})[0];
  const Output of_curved = Gradients({curved}, {x})[0];
  const Output of_last = Gradients({curved}, {x}, last)[0];
  const FeedMap feeds = {{x, Values({256, 256}, 1)}, {w, Tensor::Scalar(0.5)}};
  auto run = [&](Output fetch, int64_t tensors) {
    HostAllocator()->set_limit(HostAllocator()->stats().bytes_in_use + tensors * kTensor);
    const absl::Status status = session().Run(feeds, {fetch}).status();
    HostAllocator()->set_limit(0);
    return status.code();
  };
  EXPECT_EQ(run(of_linear, 40), absl::StatusCode::kOk);
  EXPECT_EQ(run(of_last, 40), absl::StatusCode::kOk);
  EXPECT_EQ(run(of_curved, 40), absl::StatusCode::kResourceExhausted);
  // One tensor for each iteration, and what the allocator's block sizes add.
  EXPECT_EQ(run(of_curved, kIterations * 5 / 4 + 40), absl::StatusCode::kOk);
}

TEST_F(LoopGradient, SparseInALoop) {
  Output table = ops::Placeholder(s_, ElementType::kDouble, {.shape = PartialShape({5, 2})});
  Output ids = Const(s_, Tensor::Vector<int32_t>({3, 1, 3, 0}));
  Output start = Const(s_, Tensor::Vector<double>({1, 2}));
  Output y = Repeat(s_, 4, start, [&](const Scope& t, Output i, Output v) {
    Output id = ops::Gather(t, ids, ops::ExpandDims(t, i, 0));
    return ops::Add(t, v, ops::Sum(t, ops::Gather(t, table, id), 0));
  });
  ASSERT_TRUE(s_.ok()) << s_.status();
  std::vector<Gradient> grads;
  ASSERT_TRUE(AddSymbolicGradients({y}, {table}, {}, &grads).ok());
  ASSERT_TRUE(grads[0].sparse());
  const FeedMap feeds = {{table, Values({5, 2}, 1)}};
  const std::vector<Tensor> values =
      Run({grads[0].values, grads[0].indices, grads[0].dense_shape}, feeds);
  EXPECT_EQ(values[0].shape(), Shape({4, 2}));
  EXPECT_THAT(values[1].unchecked_values<int32_t>(), testing::ElementsAre(3, 1, 3, 0));
  EXPECT_THAT(values[2].unchecked_values<int32_t>(), testing::ElementsAre(5, 2));
  const Tensor dense = Run(Gradients({y}, {table}), feeds)[0];
  EXPECT_THAT(dense.unchecked_values<double>(), testing::ElementsAre(1, 1, 1, 1, 0, 0, 2, 2, 0, 0));
}

TEST_F(LoopGradient, SparseInABranchInALoop) {
  Check(
      [](const Scope& s, const Outputs& xs) {
        Output y = Repeat(s, 4, xs[1], [&](const Scope& t, Output i, Output v) {
          return Cond(
              t, ops::Less(t, i, 2),
              [&](const Scope& u) {
                return ops::Mul(u, v,
                                ops::Sum(u, ops::Gather(u, xs[0], ops::ExpandDims(u, i, 0)), 0));
              },
              [&](const Scope& u) { return ops::Sin(u, v); });
        });
        return SumAll(s, y);
      },
      {{3, 2}, {2}}, 1);
}

TEST_F(LoopGradient, ValuesInsideALoopHaveNoGradient) {
  Output x = Placeholder(Shape()), inside;
  Output y = Repeat(s_, 3, x, [&](const Scope& t, Output, Output v) {
    inside = ops::Sin(t, v);
    return inside;
  });
  std::vector<Output> grads;
  absl::Status status = AddSymbolicGradients({y}, {inside}, {}, &grads);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(inside.node->name()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("inside loop"));
}

TEST_F(LoopGradient, AnOpWithoutGradientInALoopIsNamed) {
  Output x = Placeholder(Shape());
  Output y = Repeat(s_, 3, x, [&](const Scope& t, Output, Output v) {
    return ops::Snapshot(t.WithOpName("here"), v);
  });
  std::vector<Output> grads;
  absl::Status status = AddSymbolicGradients({y}, {x}, {}, &grads);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("here"));
}

TEST_F(LoopGradient, StopsAndGates) {
  Output x = Placeholder(Shape());
  Output a = ops::Square(s_, x);
  Output y = ops::Mul(s_, a, ops::Exp(s_, x));
  const FeedMap feeds = {{x, Tensor::Scalar(2.0)}};
  GradientOptions options;
  options.stop_gradients = {a};
  EXPECT_DOUBLE_EQ(Run(Gradients({y}, {x}, options), feeds)[0].unchecked_scalar<double>(),
                   4 * std::exp(2.0));
  options = {};
  options.gate_gradients = true;
  const Outputs gated = Gradients({y}, {a}, options);
  EXPECT_EQ(gated[0].node->op(), "Mul");
  const Outputs both = Gradients({y}, {x, a}, options);
  EXPECT_DOUBLE_EQ(Run({both[0]}, feeds)[0].unchecked_scalar<double>(), 8 * std::exp(2.0));
  EXPECT_EQ(both[1].node->op(), "Identity");
  EXPECT_GE(both[1].node->control_inputs().size(), 2u);
}

}  // namespace
}  // namespace troupe
