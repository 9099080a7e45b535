#include "api/extension.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/gradients.h"
#include "api/ops.h"
#include "api/program/child_process.h"
#include "api/session.h"
#include "api/training/variables.h"
#include "examples/extension/cube.h"

namespace troupe {
namespace {

using testing::HasSubstr;

std::string Library(const std::string& name) {
  return std::string(TROUPE_EXTENSION_FOLDER) + "/" + name + ".so";
}

bool HasOp(const std::string& op) { return OpRegistry::Global()->LookUp(op).ok(); }

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& says) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(says));
}

// --- libraries that are refused ---

TEST(LoadLibraryTest, AnotherVersionIsRefusedBeforeItsCodeRuns) {
  const absl::Status status = LoadLibrary(Library("wrong_version"));
  ExpectError(status, absl::StatusCode::kFailedPrecondition, "it was built for Troupe 0.0.9");
  ExpectError(status, absl::StatusCode::kFailedPrecondition, "this is Troupe " TROUPE_VERSION);
  ExpectError(status, absl::StatusCode::kFailedPrecondition, "wrong_version.so");
  EXPECT_FALSE(HasOp("FromWrongVersion"));
  EXPECT_FALSE(HasOp("StaticFromWrongVersion")) << "not even static objects were made";
}

TEST(LoadLibraryTest, AnotherLayoutIsRefusedBeforeItsCodeRuns) {
  ExpectError(LoadLibrary(Library("wrong_layout")), absl::StatusCode::kFailedPrecondition,
              "with another compiler or other headers");
  EXPECT_FALSE(HasOp("StaticFromWrongLayout"));
}

TEST(LoadLibraryTest, VersionsAndLayoutsAreTold) {
  EXPECT_EQ(VersionPart(0, "12.3.45"), 12);
  EXPECT_EQ(VersionPart(1, "12.3.45"), 3);
  EXPECT_EQ(VersionPart(2, "12.3.45"), 45);
  auto other = kExtensionLayout;
  for (uint32_t& size : other) {
    size += 8;
    EXPECT_NE(LayoutCode(other), LayoutCode());
    size -= 8;
  }
}

// Programs and extensions that were built for other layouts must not find this library by its name.
TEST(LoadLibraryTest, AnotherLayoutHasAnotherVersion) {
  auto layout = kExtensionLayout;
  layout[0] = (layout[0] << 20) + sizeof(SessionOptions) + (sizeof(RunOptions) << 10);
  EXPECT_EQ(std::make_pair(VersionPart(1), LayoutCode(layout)),
            std::make_pair(1, uint64_t{16500787118341429970u}))
      << "raise the second number of the version in CMakeLists.txt, and write it here";
}

TEST(LoadLibraryTest, WhatIsNoExtensionIsRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ExpectError(LoadLibrary("/nowhere/x.so"), absl::StatusCode::kNotFound, "/nowhere/x.so");
  ExpectError(LoadLibrary("nothing_here.so"), absl::StatusCode::kNotFound, "nothing_here.so");
  ExpectError(LoadLibrary(""), invalid, "");
  ExpectError(LoadLibrary("/"), invalid, "irectory");
  ExpectError(LoadLibrary("CMakeLists.txt"), invalid, "CMakeLists.txt");
  ExpectError(LoadLibrary("/proc/self/exe"), invalid, "executable");
  ExpectError(LoadLibrary(Library("no_symbol")), invalid, "it is no extension");
  ExpectError(LoadLibrary(Library("other_data")), invalid, "TROUPE_EXTENSION");
  ExpectError(LoadLibrary(Library("undefined")), invalid, "NobodyHasThis");
}

TEST(LoadLibraryTest, AnOpThatExistsOtherwiseIsRefusedWithAllTheRest) {
  ExpectError(LoadLibrary(Library("clash")), absl::StatusCode::kAlreadyExists, "op MatMul");
  EXPECT_FALSE(HasOp("FromClash"));
  EXPECT_TRUE(HasOp("MatMul"));
}

TEST(LoadLibraryTest, ALibraryMayBeTriedAgain) {
  ExpectError(LoadLibrary(Library("failing")), absl::StatusCode::kUnavailable, "not now");
  EXPECT_FALSE(HasOp("FromFailing"));
  EXPECT_TRUE(LoadLibrary(Library("failing")).ok());
  EXPECT_TRUE(HasOp("FromFailing"));
}

TEST(LoadLibraryTest, ThreadsMayLoadTheSameLibrary) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { good += LoadLibrary(Library("counting")).ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_TRUE(HasOp("FromCounting"));
  void* library = dlopen(Library("counting").c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  auto* calls = static_cast<std::atomic<int>*>(dlsym(library, "troupe_test_calls"));
  ASSERT_NE(calls, nullptr);
  EXPECT_EQ(*calls, 1);
  dlclose(library);
}

TEST(LoadLibraryTest, ACopyOfALibraryChangesNothing) {
  const std::string copy = testing::TempDir() + "/counting_copy.so";
  std::filesystem::copy_file(Library("counting"), copy,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(LoadLibrary(Library("counting")).ok());
  const absl::Status status = LoadLibrary(copy);
  EXPECT_TRUE(status.ok()) << status;
  std::filesystem::remove(copy);
}

// --- extensions of the application itself ---

void Halves(GradientContext& g) {
  g.set(0, g.Op("Mul", {g.grad(0), g.ScalarOfType(g.input(0).type(), 0.5)}));
}

class HalfKernel : public Kernel {
 public:
  HalfKernel(KernelConstruction&, absl::Status*) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      y->mutable_data<float>()[i] = x.unchecked_data<float>()[i] / 2;
    }
    return absl::OkStatus();
  }
};

TEST(RegisterExtensionTest, AddsOpsKernelsAndGradients) {
  auto add = [](Extension& extension) {
    extension.Op("TestHalf")
        .Input("x: T")
        .Output("y: T")
        .Attr("T: {float, double}")
        .SetShapeFn(UnchangedShape);
    extension.Kernel(KernelSpec("TestHalf").Types("T", {ElementType::kFloat}),
                     MakeKernel<HalfKernel>);
    extension.Gradient("TestHalf", Halves);
    return absl::OkStatus();
  };
  ASSERT_TRUE(RegisterExtension(add).ok());
  EXPECT_TRUE(RegisterExtension(add).ok()) << "again, with the same definition";
  EXPECT_EQ(KernelRegistry::Global()->ForOp("TestHalf").size(), 1u);

  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat);
  Output y = Output(s.AddNode("TestHalf", [&](ScopedSpec& spec) { spec.Input(x); }));
  Output dx = Gradients(s, {ops::Square(s, y)}, {x})[0];
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = Session::Create(s.graph());
  auto values = (*session)->Run({{x, Tensor::Scalar(6.0f)}}, {y, dx});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 3);
  EXPECT_EQ((*values)[1].unchecked_scalar<float>(), 3);
}

TEST(RegisterExtensionTest, WrongOnesAreRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const auto exists = absl::StatusCode::kAlreadyExists;
  ExpectError(RegisterExtension(nullptr), invalid, "without a function");
  ExpectError(RegisterExtension([](Extension& e) {
                e.Op("TestBadSpec").Input("x: nothing at all");
                return absl::OkStatus();
              }),
              invalid, "TestBadSpec");
  ExpectError(RegisterExtension([](Extension& e) {
                e.Op("TestTwice").Input("x: float");
                e.Op("TestTwice").Input("x: int32");
                return absl::OkStatus();
              }),
              exists, "TestTwice");
  ExpectError(RegisterExtension([](Extension& e) {
                e.Kernel(KernelSpec("TestNoSuchOp"), MakeKernel<HalfKernel>);
                return absl::OkStatus();
              }),
              absl::StatusCode::kNotFound, "TestNoSuchOp");
  ExpectError(RegisterExtension([](Extension& e) {
                e.Kernel(KernelSpec("Neg").Types("U", {ElementType::kFloat}),
                         MakeKernel<HalfKernel>);
                return absl::OkStatus();
              }),
              invalid, "attribute 'U'");
  ExpectError(RegisterExtension([](Extension& e) {
                e.Op("TestNoFactory").Input("x: float");
                e.Kernel(KernelSpec("TestNoFactory"), nullptr);
                return absl::OkStatus();
              }),
              invalid, "no factory");
  ExpectError(RegisterExtension([](Extension& e) {
                e.Gradient("Neg", Halves);
                return absl::OkStatus();
              }),
              exists, "op Neg has a gradient");
  ExpectError(RegisterExtension([](Extension& e) {
                e.Gradient("TestNoSuchOp", Halves);
                return absl::OkStatus();
              }),
              absl::StatusCode::kNotFound, "TestNoSuchOp");
  ExpectError(
      RegisterExtension([](Extension&) -> absl::Status { throw std::runtime_error("ouch"); }),
      absl::StatusCode::kInternal, "ouch");
  for (const char* op : {"TestBadSpec", "TestTwice", "TestNoFactory"}) EXPECT_FALSE(HasOp(op));
}

// --- the example ---

#ifdef TROUPE_CUBE_LIBRARY

/// What a command prints; its exit status must be `status`.
std::string Command(const std::string& command, int status = 0) {
  const auto ran =
      RunProgram({.arguments = {"/bin/sh", "-c", command}, .errors = true}, absl::Minutes(2));
  if (!ran.ok()) return ran.status().ToString();
  EXPECT_EQ(ran->status.code, status) << ran->output;
  return ran->output;
}

TEST(CubeTest, ComputesAndDifferentiates) {
  ASSERT_TRUE(LoadLibrary(TROUPE_CUBE_LIBRARY).ok());
  ASSERT_TRUE(LoadLibrary(TROUPE_CUBE_LIBRARY).ok()) << "twice is fine";
  for (ElementType type : FloatTypes()) {
    Scope s = Scope::NewRoot();
    Output values = Const(s, Tensor::Vector<float>({-2, 0, 0.5f, 3}));
    Output x = ops::Cast(s, values, type);
    Output y = Cube(s, x);
    ASSERT_TRUE(s.ok()) << s.status();
    EXPECT_EQ(y.shape(), PartialShape({4}));
    Output dx = Gradients(s, {y}, {x})[0];
    auto session = Session::Create(s.graph());
    auto got = (*session)->Run(
        {ops::Cast(s, y, ElementType::kDouble), ops::Cast(s, dx, ElementType::kDouble)});
    ASSERT_TRUE(got.ok()) << got.status();
    const double x_values[] = {-2, 0, 0.5, 3};
    for (int i = 0; i < 4; ++i) {
      const double v = x_values[i];
      EXPECT_EQ((*got)[0].unchecked_data<double>()[i], v * v * v) << ElementTypeName(type);
      EXPECT_EQ((*got)[1].unchecked_data<double>()[i], 3 * v * v) << ElementTypeName(type);
    }
  }
}

TEST(CubeTest, ManyElementsOnSeveralThreads) {
  ASSERT_TRUE(LoadLibrary(TROUPE_CUBE_LIBRARY).ok());
  Scope s = Scope::NewRoot();
  Output y = Cube(s, ops::Range(s, 0.0f, 1e6f, 1.0f));
  auto session = Session::Create(s.graph(), {.threads = 4});
  auto got = (*session)->Run({y});
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t i = 0; i < 1000000; i += 997) {
    const float v = static_cast<float>(i);
    ASSERT_EQ((*got)[0].unchecked_data<float>()[i], v * v * v) << i;
  }
}

TEST(CubeTest, TheExampleRuns) {
  EXPECT_EQ(Command(TROUPE_USE_CUBE), "cube 1, slope 3\ncube 8, slope 12\ncube 27, slope 27\n");
  EXPECT_THAT(Command(std::string(TROUPE_USE_CUBE) + " " + Library("wrong_version"), 1),
              HasSubstr("0.0.9"));
}

TEST(CubeTest, TheCommandLineLoadsLibraries) {
  const std::string graph = testing::TempDir() + "/cube.pbtxt";
  std::ofstream(graph) << R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "Cube" input: "x" attr { key: "T" value { type: DT_FLOAT } } })";
  const std::string program = TROUPE_PROGRAM;
  const std::string library = std::string(" --library ") + TROUPE_CUBE_LIBRARY;
  const std::string run = program + " run " + graph + " --feed x=[1,2] --fetch y";
  EXPECT_THAT(Command(run, 1), HasSubstr("Cube"));
  EXPECT_EQ(Command(run + library), "y float [2] [1.0,8.0]\n");
  EXPECT_THAT(
      Command(program + " bench " + graph + " --feed x=2 --fetch y --seconds 0.01" + library),
      HasSubstr("median_us"));
  EXPECT_THAT(Command(program + " graph " + graph, 1), HasSubstr("missing op: Cube"));
  EXPECT_THAT(Command(program + " graph " + graph + library), testing::Not(HasSubstr("missing")));
  EXPECT_THAT(Command(run + " --library " + Library("wrong_version"), 1),
              HasSubstr("FAILED_PRECONDITION: library"));
  EXPECT_THAT(Command(run + " --library", 2), HasSubstr("--library: 1 required"));
  std::remove(graph.c_str());
}

#endif  // TROUPE_CUBE_LIBRARY

}  // namespace
}  // namespace troupe
