// Every gradient against central differences. A new op is one line in its family's table.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "api/session.h"
#include "graph/gradients/add_gradients.h"
#include "graph/protos/graph.pb.h"
#include "tests/graph/gradients/checked_elsewhere.h"
#include "tests/graph/gradients/gradient_test_util.h"
#include "tests/graph/gradients/numeric_cases.h"
#include "tests/source_dir.h"

namespace troupe {
namespace {

using numeric::Case;
using numeric::In;
using numeric::kFloat;
using numeric::X;

std::vector<Case> Cases() {
  using namespace numeric;  // NOLINT: its tables
  std::vector<Case> cases;
  AddMathCases(&cases);
  AddReductionCases(&cases);
  AddArrayCases(&cases);
  AddLinalgCases(&cases);
  AddUpdateCases(&cases);
  AddNetworkCases(&cases);
  AddImageCases(&cases);
  AddSparseCases(&cases);
  AddRandomCases(&cases);
  return cases;
}

/// A sequence of numbers in [0, 1) that is the same everywhere.
class Numbers {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 33) / (uint64_t{1} << 31);
  }

 private:
  uint64_t state_ = 42;
};

double Get(const Tensor& tensor, int64_t i) {
  return tensor.type() == kFloat ? tensor.unchecked_data<float>()[i]
                                 : tensor.unchecked_data<double>()[i];
}
void Set(Tensor& tensor, int64_t i, double value) {
  if (tensor.type() == kFloat) {
    tensor.mutable_data<float>()[i] = static_cast<float>(value);
  } else {
    tensor.mutable_data<double>()[i] = value;
  }
}
Tensor CopyOf(const Tensor& tensor) { return *tensor.Clone(); }

Tensor MakeInput(const In& in, ElementType type, Numbers& numbers) {
  Tensor value = Tensor::Uninitialized(type, in.shape);
  const int64_t count = value.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    // Distinct: steps of a third, in mixed order, never near a whole number of any op's kinks.
    Set(value, i,
        in.low == in.high
            ? (static_cast<double>((i * 7 + 3) % count) - static_cast<double>(count) / 2 + 0.2) /
                  3.1
            : in.low + (in.high - in.low) * numbers.Next());
  }
  return value;
}

/// The graph of a case: sum over outputs of <output, weight> as a function of the inputs.
struct Function {
  TestGraph g;
  std::vector<Output> xs, ys, weights;
  std::vector<Tensor> values, weight_values;
};

void AddOutput(Output y, Numbers& numbers, Function* f) {
  ASSERT_TRUE(y.shape().fully_known()) << y.name();
  Tensor weight = MakeInput(X(*y.shape().ToShape()), y.type(), numbers);
  f->ys.push_back(y);
  f->weights.push_back(f->g.Const(weight));
  f->weight_values.push_back(weight);
}

void BuildFunction(const Case& c, Numbers& numbers, Function* f) {
  std::vector<Output> inputs;
  for (const In& in : c.inputs) {
    if (in.constant.valid()) {
      inputs.push_back(f->g.Const(in.constant));
      continue;
    }
    inputs.push_back(f->g.Placeholder(c.type, in.shape));
    f->xs.push_back(inputs.back());
    f->values.push_back(MakeInput(in, c.type, numbers));
  }
  NodeSpec spec(c.op, "op");
  size_t next = 0, list = 0;
  const OpDef& def = *(*OpRegistry::Global()->LookUp(c.op))->def;
  for (const auto& arg : def.input_arg()) {
    if (arg.number_attr().empty() && arg.type_list_attr().empty()) {
      spec.Input(inputs.at(next++));
    } else {
      const int size = c.lists.at(list++);
      spec.Input(absl::MakeConstSpan(inputs).subspan(next, size));
      next += size;
    }
  }
  if (c.attrs) c.attrs(spec);
  Node* node = f->g.Add(std::move(spec));
  ASSERT_TRUE(node != nullptr) << f->g.status();
  for (int i = 0; i < node->num_outputs(); ++i) {
    const bool chosen = c.outputs.empty()
                            ? IsFloating(node->output_type(i))
                            : std::find(c.outputs.begin(), c.outputs.end(), i) != c.outputs.end();
    if (chosen) AddOutput(Output(node, i), numbers, f);
  }
}

/// Replaces the function by its gradient.
absl::Status Differentiate(Numbers& numbers, Function* f) {
  std::vector<Output> grads;
  absl::Status status = AddSymbolicGradients(f->ys, f->xs, f->weights, &grads);
  f->ys.clear();
  f->weights.clear();
  f->weight_values.clear();
  for (const Output& grad : grads) {
    if (grad.valid()) AddOutput(grad, numbers, f);
  }
  return status;
}

/// Compares the function's gradient with differences of its values.
void CheckFunction(const Function& function) {
  Function f = function;
  std::vector<Output> grads;
  absl::Status status = AddSymbolicGradients(f.ys, f.xs, f.weights, &grads);
  ASSERT_TRUE(status.ok()) << status;
  SessionOptions options;
  options.threads = 1;
  auto session = Session::Create(f.g.shared_graph(), options);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<Output> connected;
  for (const Output& grad : grads) {
    if (grad.valid()) connected.push_back(grad);
  }
  std::vector<Tensor> symbolic(connected.size());
  if (!connected.empty()) {
    auto symbolic_call = (*session)->MakeCallable(f.xs, connected);
    ASSERT_TRUE(symbolic_call.ok()) << symbolic_call.status();
    status = (*symbolic_call)(f.values, absl::MakeSpan(symbolic));
    ASSERT_TRUE(status.ok()) << status;
  }

  auto call = (*session)->MakeCallable(f.xs, f.ys);
  ASSERT_TRUE(call.ok()) << call.status();
  auto value = [&]() {
    std::vector<Tensor> ys(f.ys.size());
    absl::Status run = (*call)(f.values, absl::MakeSpan(ys));
    EXPECT_TRUE(run.ok()) << run;
    double sum = 0;
    for (size_t i = 0; i < ys.size() && run.ok(); ++i) {
      for (int64_t j = 0; j < ys[i].num_elements(); ++j) {
        sum += Get(ys[i], j) * Get(f.weight_values[i], j);
      }
    }
    return sum;
  };
  const bool coarse = f.ys[0].type() == kFloat || f.values[0].type() == kFloat;
  const double step = coarse ? 1e-2 : 1e-5, tolerance = coarse ? 5e-3 : 1e-7;
  size_t next = 0;
  for (size_t i = 0; i < f.xs.size(); ++i) {
    const bool has = grads[i].valid();
    const Tensor grad = has ? symbolic[next++] : Tensor();
    if (has) {
      ASSERT_EQ(grad.shape(), f.values[i].shape()) << "input " << i;
      ASSERT_EQ(grad.type(), f.values[i].type()) << "input " << i;
    }
    const Tensor original = f.values[i];
    for (int64_t j = 0; j < original.num_elements(); ++j) {
      const double x = Get(original, j);
      double at[2];
      for (int side : {0, 1}) {
        f.values[i] = CopyOf(original);
        Set(f.values[i], j, x + (side == 0 ? -step : step));
        at[side] = value();
      }
      const double numeric = (at[1] - at[0]) / (2 * step);
      EXPECT_NEAR(has ? Get(grad, j) : 0, numeric, tolerance * std::max(1.0, std::abs(numeric)))
          << "input " << i << ", element " << j;
    }
    f.values[i] = original;
  }
}

std::string Describe(const Case& c) {
  std::string text = c.op;
  for (const In& in : c.inputs) text += " " + in.shape.ToString();
  return text;
}

TEST(NumericGradient, EveryCase) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    Numbers numbers;
    Function f;
    BuildFunction(c, numbers, &f);
    if (!f.ys.empty() && !f.xs.empty()) CheckFunction(f);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// So the ops of gradients are differentiated too ("FusedBatchNormGrad" and its versions
// "FusedBatchNormGradV2", "FusedBatchNormGradV3").
TEST(NumericGradient, SecondDerivatives) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    if (!c.twice) continue;
    Numbers numbers;
    Function f;
    BuildFunction(c, numbers, &f);
    if (f.ys.empty() || f.xs.empty()) continue;
    absl::Status status = Differentiate(numbers, &f);
    ASSERT_TRUE(status.ok()) << status;
    if (!f.ys.empty()) CheckFunction(f);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// As in TensorFlow, the gradient of a real y with respect to z is dy/d(re z) + i dy/d(im z).
TEST(NumericGradient, ComplexNumbers) {
  TestGraph g;
  const complex128 z0(0.75, -0.5), w(0.3, 0.9);
  Output z = g.Placeholder(ElementType::kComplex128, kScalar);
  Output weight = g.Scalar<complex128>(w);
  Output product = g.Op("Mul", {g.Op("Conj", {z}), g.Op("Tanh", {z})});
  auto part = [&](const char* op) {
    return g.Op(op, {z}, [](NodeSpec& spec) { spec.Attr("Tout", ElementType::kDouble); });
  };
  auto complex = [&](Output real, Output imag) {
    return g.Op("Complex", {real, imag},
                [](NodeSpec& spec) { spec.Attr("Tout", ElementType::kComplex128); });
  };
  Output ys[] = {g.Op("Conj", {z}),
                 g.Op("Exp", {z}),
                 g.Op("Square", {product}),
                 g.Op("RealDiv", {product, g.Op("Sqrt", {z})}),
                 g.Op("Pow", {z, product}),
                 g.Op("Log", {g.Op("Sigmoid", {z})}),
                 g.Op("Rsqrt", {g.Op("Sin", {z})}),
                 g.Op("Reciprocal", {g.Op("Cos", {z})}),
                 g.Op("Log1p", {g.Op("Expm1", {z})}),
                 g.Op("Acos", {g.Op("Asin", {z})}),
                 g.Op("Atan", {g.Op("Atanh", {z})}),
                 g.Op("Sinh", {g.Op("Asinh", {g.Op("Acosh", {z})})}),
                 g.Op("Cosh", {z}),
                 complex(part("Angle"), part("ComplexAbs")),
                 complex(g.Op("Square", {part("Imag")}), part("Real"))};
  for (const Output& y : ys) {
    SCOPED_TRACE(y.node->op());
    Output grad = g.Gradients({y}, {z}, {weight})[0];
    auto session = Session::Create(g.shared_graph());
    ASSERT_TRUE(session.ok()) << session.status();
    auto run = [&](Output fetch, complex128 at) {
      const Output fetches[] = {fetch};
      auto values = (*session)->Run(FeedMap{{z, Tensor::Scalar(at)}}, fetches);
      EXPECT_TRUE(values.ok()) << values.status();
      return values.ok() ? (*values)[0].unchecked_scalar<complex128>() : complex128();
    };
    auto loss = [&](complex128 at) { return std::real(std::conj(w) * run(y, at)); };
    const double h = 1e-6;
    const double re = (loss(z0 + h) - loss(z0 - h)) / (2 * h);
    const complex128 ih(0, h);
    const double im = (loss(z0 + ih) - loss(z0 - ih)) / (2 * h);
    const complex128 got = run(grad, z0);
    EXPECT_NEAR(got.real(), re, 1e-7 * std::max(1.0, std::abs(re)));
    EXPECT_NEAR(got.imag(), im, 1e-7 * std::max(1.0, std::abs(im)));
  }
}

// By a case, by one of the tests that the list names, or because an op that is checked has the same
// function.
TEST(NumericGradient, EveryGradientIsChecked) {
  std::set<std::string> checked(std::begin(kCheckedByGoldenCases), std::end(kCheckedByGoldenCases));
  for (const auto& [op, file] : kCheckedByOtherTests) {
    std::ifstream test(std::string(TROUPE_SOURCE_DIR "/tests/") + file);
    const std::string text(std::istreambuf_iterator<char>(test), {});
    // As a name in a string, or as an op function: not within another op's.
    const bool there = std::regex_search(text, std::regex("[\":]" + std::string(op) + "[\"(/]"));
    EXPECT_TRUE(there) << file << " has nothing about " << op;
    checked.insert(op);
  }
  for (const Case& c : Cases()) checked.insert(c.op);
  std::set<GradientFn> functions = {nullptr};
  for (const std::string& op : checked) {
    const absl::StatusOr<GradientFn> function = GradientRegistry::Global()->LookUp(op);
    ASSERT_TRUE(function.ok()) << op << " has no gradient";
    functions.insert(*function);
  }
  for (const std::string& op : GradientRegistry::Global()->Names()) {
    EXPECT_TRUE(functions.count(GradientRegistry::Global()->LookUp(op).value()))
        << op << " has a gradient that no other op has, and no case";
  }
}

}  // namespace
}  // namespace troupe
