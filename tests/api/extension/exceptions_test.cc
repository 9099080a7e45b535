// What an extension throws, wherever it is called, is an error that names the node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "api/extension.h"
#include "api/gradients.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"

namespace troupe {
namespace {

using testing::HasSubstr;

enum class Throws { kNothing, kRuntimeError, kBadAlloc, kInt };
/// What the functions below throw.
Throws in_shape = Throws::kNothing, in_constructor = Throws::kNothing,
       in_compute = Throws::kNothing, in_gradient = Throws::kNothing;

void MayThrow(Throws what) {
  if (what == Throws::kRuntimeError) throw std::runtime_error("ouch");
  if (what == Throws::kBadAlloc) throw std::bad_alloc();
  if (what == Throws::kInt) throw 7;
}

class ThrowingKernel : public Kernel {
 public:
  ThrowingKernel(KernelConstruction&, absl::Status*) { MayThrow(in_constructor); }
  absl::Status Compute(KernelContext& ctx) override {
    ctx.ParallelFor(100, 1, [](int64_t, int64_t) { MayThrow(in_compute); });
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }
};

absl::Status Add(Extension& extension) {
  extension.Op("TestThrows")
      .Input("x: float")
      .Output("y: float")
      .SetShapeFn([](InferenceContext* c) {
        MayThrow(in_shape);
        return UnchangedShape(c);
      });
  extension.Kernel(KernelSpec("TestThrows"), MakeKernel<ThrowingKernel>);
  extension.Gradient("TestThrows", [](GradientContext& g) {
    MayThrow(in_gradient);
    g.set(0, g.grad(0));
  });
  return absl::OkStatus();
}

class ThrowingExtensionTest : public testing::TestWithParam<Throws> {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterExtension(Add).ok()); }
  void TearDown() override { in_shape = in_constructor = in_compute = in_gradient = {}; }

  Output Culprit() {
    return Output(
        s_.WithOpName("culprit").AddNode("TestThrows", [&](ScopedSpec& spec) { spec.Input(x_); }));
  }
  static void ExpectThrown(const absl::Status& status) {
    const bool memory = GetParam() == Throws::kBadAlloc;
    EXPECT_EQ(status.code(),
              memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal)
        << status;
    const std::string text(status.message());
    EXPECT_THAT(text, HasSubstr("culprit"));
    if (GetParam() == Throws::kRuntimeError) {
      EXPECT_THAT(text, HasSubstr("ouch"));
    }
  }

  Scope s_ = Scope::NewRoot();
  Output x_ = ops::Placeholder(s_, ElementType::kFloat);
};

INSTANTIATE_TEST_SUITE_P(Throws, ThrowingExtensionTest,
                         testing::Values(Throws::kRuntimeError, Throws::kBadAlloc, Throws::kInt));

TEST_P(ThrowingExtensionTest, ItsFunction) {
  static Throws what;
  what = GetParam();
  const absl::Status status = RegisterExtension([](Extension&) {
    MayThrow(what);
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), what == Throws::kBadAlloc ? absl::StatusCode::kResourceExhausted
                                                     : absl::StatusCode::kInternal);
}

TEST_P(ThrowingExtensionTest, AShapeFunction) {
  in_shape = GetParam();
  Culprit();
  ExpectThrown(s_.status());
}

TEST_P(ThrowingExtensionTest, AGradientFunction) {
  Output y = Culprit();
  in_gradient = GetParam();
  std::vector<Output> grads;
  ExpectThrown(AddSymbolicGradients({y}, {x_}, {}, &grads));
  in_gradient = Throws::kNothing;
  EXPECT_TRUE(AddSymbolicGradients({y}, {x_}, {}, &grads).ok());
}

TEST_P(ThrowingExtensionTest, AKernelAndItsConstructor) {
  Output y = Culprit();
  for (int threads : {1, 3}) {
    auto session = Session::Create(s_.graph(), {.threads = threads});
    ASSERT_TRUE(session.ok());
    const FeedMap feeds = {{x_, Tensor::Scalar(1.0f)}};
    in_constructor = GetParam();
    ExpectThrown((*session)->Run(feeds, {y}).status());
    in_constructor = Throws::kNothing;
    in_compute = GetParam();
    for (int i = 0; i < 10; ++i) ExpectThrown((*session)->Run(feeds, {y}).status());
    in_compute = Throws::kNothing;
    const auto values = (*session)->Run(feeds, {y});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 1);
    EXPECT_TRUE((*session)->Close().ok());
  }
}

}  // namespace
}  // namespace troupe
