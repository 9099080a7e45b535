// Every update rule, dense and sparse, on reference and resource variables, against its formula in
// double precision, an element at a time.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "devices/resource_handle.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/kernels/state/fake_variable.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;
using Values = std::vector<double>;
using Step = std::function<void(Values& v, double g, const Values& s)>;

struct Rule {
  std::string name;
  std::string forms;  ///< d: dense, r: dense resource, s: sparse, R: sparse resource.
  int variables;
  std::string inputs;  ///< What follows the variables; '#' is a scalar, g the gradient, i indices.
  Values scalars;
  Step step;
  std::string flag;
  bool flag_value = false;
  bool real_only = false;
};

double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double Soft(double x, double t) { return Sign(x) * std::max(std::abs(x) - t, 0.0); }

void Ftrl(Values& v, double g, double lr, double l1, double l2, double shrinkage, double power,
          bool multiplied) {
  const double before = std::pow(v[1], -power), after = std::pow(v[1] + g * g, -power);
  const double scale = multiplied ? lr : 1;
  v[2] += scale * (g + 2 * shrinkage * v[0] - (after - before) / lr * v[0]);
  v[1] += g * g;
  v[0] = -Soft(v[2], scale * l1) / (scale * (after / lr + 2 * l2));
}

std::vector<Rule> Rules() {
  const std::string all = "drsR", dense = "dr";
  std::vector<Rule> rules = {
      {"AdaMax",
       dense,
       3,
       "#####g",
       {0.5, 0.25, 0.875, 0.75, 0.125},
       [](Values& v, double g, const Values& s) {
         v[1] = s[2] * v[1] + (1 - s[2]) * g;
         v[2] = std::max(s[3] * v[2], std::abs(g));
         v[0] -= s[1] / (1 - s[0]) * v[1] / (v[2] + s[4]);
       }},
      {"Adadelta",
       all,
       3,
       "###gi",
       {0.5, 0.75, 0.125},
       [](Values& v, double g, const Values& s) {
         v[1] = s[1] * v[1] + (1 - s[1]) * g * g;
         const double update = std::sqrt((v[2] + s[2]) / (v[1] + s[2])) * g;
         v[0] -= s[0] * update;
         v[2] = s[1] * v[2] + (1 - s[1]) * update * update;
       }},
      {"AdagradDA",
       all,
       3,
       "gi####",
       {0.5, 0.25, 0.125, 3},
       [](Values& v, double g, const Values& s) {
         v[1] += g;
         v[2] += g * g;
         v[0] = -s[0] * Soft(v[1], s[1] * s[3]) / (s[2] * s[3] * s[0] + std::sqrt(v[2]));
       }},
      {"AdamWithAmsgrad",
       "r",
       4,
       "######g",
       {0.5, 0.75, 0.25, 0.875, 0.75, 0.125},
       [](Values& v, double g, const Values& s) {
         v[1] = s[3] * v[1] + (1 - s[3]) * g;
         v[2] = s[4] * v[2] + (1 - s[4]) * g * g;
         v[3] = std::max(v[3], v[2]);
         v[0] -= s[2] * std::sqrt(1 - s[1]) / (1 - s[0]) * v[1] / (std::sqrt(v[3]) + s[5]);
       }},
      {"AddSign",
       dense,
       2,
       "####g",
       {0.25, 1.5, 0.5, 0.75},
       [](Values& v, double g, const Values& s) {
         v[1] = s[3] * v[1] + (1 - s[3]) * g;
         v[0] -= s[0] * (s[1] + s[2] * Sign(g) * Sign(v[1])) * g;
       }},
      {"CenteredRMSProp",
       all,
       4,
       "####gi",
       {0.25, 0.75, 0.5, 0.5},
       [](Values& v, double g, const Values& s) {
         v[1] = s[1] * v[1] + (1 - s[1]) * g;
         v[2] = s[1] * v[2] + (1 - s[1]) * g * g;
         v[3] = s[2] * v[3] + s[0] * g / std::sqrt(v[2] - v[1] * v[1] + s[3]);
         v[0] -= v[3];
       }},
      {"PowerSign",
       dense,
       2,
       "####g",
       {0.25, 1.5, 0.5, 0.75},
       [](Values& v, double g, const Values& s) {
         v[1] = s[3] * v[1] + (1 - s[3]) * g;
         v[0] -= s[0] * std::exp(s[1] * s[2] * Sign(g) * Sign(v[1])) * g;
       }},
      {"ProximalAdagrad",
       all,
       2,
       "###gi",
       {0.5, 0.25, 0.125},
       [](Values& v, double g, const Values& s) {
         v[1] += g * g;
         const double rate = s[0] / std::sqrt(v[1]);
         v[0] = Soft(v[0] - rate * g, rate * s[1]) / (1 + rate * s[2]);
       }},
      {"ProximalGradientDescent",
       all,
       1,
       "###gi",
       {0.5, 0.25, 0.125},
       [](Values& v, double g, const Values& s) {
         v[0] = Soft(v[0] - s[0] * g, s[0] * s[1]) / (1 + s[0] * s[2]);
       }},
      {"RMSProp",
       all,
       3,
       "####gi",
       {0.25, 0.75, 0.5, 0.5},
       [](Values& v, double g, const Values& s) {
         v[1] = s[1] * v[1] + (1 - s[1]) * g * g;
         v[2] = s[2] * v[2] + s[0] * g / std::sqrt(v[1] + s[3]);
         v[0] -= v[2];
       }},
  };
  for (const char* name : {"AdagradDA", "AddSign", "AdaMax", "AdamWithAmsgrad", "PowerSign",
                           "ProximalAdagrad", "ProximalGradientDescent"}) {
    for (Rule& rule : rules) rule.real_only |= rule.name == name;
  }
  for (const bool flag : {false, true}) {
    rules.push_back({"Adagrad",
                     all,
                     2,
                     "#gi",
                     {0.5},
                     [flag](Values& v, double g, const Values& s) {
                       if (flag) v[1] += g * g;
                       v[0] -= s[0] * g / std::sqrt(v[1]);
                     },
                     "update_slots",
                     flag});
    rules.push_back({"AdagradV2",
                     all,
                     2,
                     "##gi",
                     {0.5, 0.25},
                     [flag](Values& v, double g, const Values& s) {
                       if (flag) v[1] += g * g;
                       v[0] -= s[0] * g / (std::sqrt(v[1]) + s[1]);
                     },
                     "update_slots",
                     flag});
    rules.push_back({"Momentum",
                     all,
                     2,
                     "#gi#",
                     {0.5, 0.75},
                     [flag](Values& v, double g, const Values& s) {
                       v[1] = s[1] * v[1] + g;
                       v[0] -= s[0] * (flag ? g + s[1] * v[1] : v[1]);
                     },
                     "use_nesterov",
                     flag});
    rules.push_back({"KerasMomentum",
                     "rR",
                     2,
                     "#gi#",
                     {0.5, 0.75},
                     [flag](Values& v, double g, const Values& s) {
                       v[1] = s[1] * v[1] - s[0] * g;
                       v[0] += flag ? s[1] * v[1] - s[0] * g : v[1];
                     },
                     "use_nesterov",
                     flag});
    for (const double power : {-0.5, -0.75}) {
      rules.push_back({"Ftrl",
                       all,
                       3,
                       "gi####",
                       {0.5, 0.25, 0.125, power},
                       [flag](Values& v, double g, const Values& s) {
                         Ftrl(v, g, s[0], s[1], s[2], 0, s[3], flag);
                       },
                       "multiply_linear_by_lr",
                       flag,
                       true});
      rules.push_back({"FtrlV2",
                       all,
                       3,
                       "gi#####",
                       {0.5, 0.25, 0.125, 0.25, power},
                       [flag](Values& v, double g, const Values& s) {
                         Ftrl(v, g, s[0], s[1], s[2], s[3], s[4], flag);
                       },
                       "multiply_linear_by_lr",
                       flag,
                       true});
    }
  }
  return rules;
}

const Rule& Find(const std::string& name) {
  static const std::vector<Rule>* rules = new std::vector<Rule>(Rules());
  for (const Rule& rule : *rules) {
    if (rule.name == name) return rule;
  }
  ADD_FAILURE() << name;
  return rules->front();
}

/// One node on fresh variables.
class Update {
 public:
  Update(const Rule& rule, char form, ElementType type, const Shape& shape, int threads = 1)
      : rule_(rule),
        form_(form),
        type_(type),
        op_(absl::StrCat(form == 'd'   ? "Apply"
                         : form == 'r' ? "ResourceApply"
                         : form == 's' ? "SparseApply"
                                       : "ResourceSparseApply",
                         rule.name),
            threads) {
    if (!rule.flag.empty()) op_.Attr(rule.flag, rule.flag_value);
    for (int i = 0; i < rule.variables; ++i) {
      // Slots are positive: some hold sums of squares.
      Tensor value = RandomTensor(ElementType::kDouble, shape, i == 0 ? -1 : 0.25, 1, i + 1);
      value = MakeTensor(type, shape, value.unchecked_values<double>());
      want_.emplace_back();
      for (int64_t k = 0; k < value.num_elements(); ++k) want_.back().push_back(At(value, k));
      variables_.push_back(MakeRef<FakeVariable>(absl::StrCat("v", i), std::move(value)));
    }
  }

  bool sparse() const { return form_ == 's' || form_ == 'R'; }
  FakeVariable& variable(int i) { return *variables_[i]; }

  absl::Status Run(const Tensor& grad, const Tensor& indices = Tensor(), Values scalars = {}) {
    if (scalars.empty()) scalars = rule_.scalars;
    for (const auto& variable : variables_) {
      if (form_ == 'd' || form_ == 's') {
        op_.InputRef(variable.get());
        continue;
      }
      ResourceHandle handle;
      handle.name = variable->name();
      handle.resource = RefPtr<Resource>::Share(variable.get());
      op_.Input(Tensor::Scalar(handle));
    }
    size_t next = 0;
    for (const char input : rule_.inputs) {
      if (input == 'g') {
        op_.Input(grad);
      } else if (input == 'i') {
        if (sparse()) op_.Input(indices);
      } else if (rule_.name == "AdagradDA" && next == 3) {
        op_.Input(Tensor::Scalar(static_cast<int64_t>(scalars[next++])));
      } else {
        op_.Input(MakeTensor(type_, Shape(), {scalars[next++]}));
      }
    }
    return op_.Run();
  }

  /// What element i of the variables should become.
  void Expect(int64_t i, double g) {
    Values v;
    for (const Values& values : want_) v.push_back(values[i]);
    rule_.step(v, g, rule_.scalars);
    for (size_t k = 0; k < v.size(); ++k) want_[k][i] = v[k];
  }

  void Check(double tolerance) {
    for (size_t k = 0; k < want_.size(); ++k) {
      const Tensor got = variables_[k]->value();
      SCOPED_TRACE(absl::StrCat("variable ", k));
      ExpectNear(got, MakeTensor(type_, got.shape(), want_[k]), tolerance, tolerance);
    }
  }

 private:
  const Rule& rule_;
  char form_;
  ElementType type_;
  OpTest op_;
  std::vector<RefPtr<FakeVariable>> variables_;
  std::vector<Values> want_;
};

struct Type {
  ElementType type;
  double tolerance;
};
const Type kTypes[] = {{ElementType::kFloat, 2e-5},
                       {ElementType::kDouble, 1e-12},
                       {ElementType::kHalf, 2e-2},
                       {ElementType::kComplex64, 2e-5}};

bool Serves(const Rule& rule, ElementType type) {
  if (type == ElementType::kComplex64) return !rule.real_only;
  if (type != ElementType::kHalf) return true;
  return rule.name != "AdagradDA" && rule.name.find("Proximal") == std::string::npos;
}

Tensor Gradient(ElementType type, const Shape& shape, Values* values) {
  Tensor random = RandomTensor(ElementType::kDouble, shape, -1, 1, 99);
  random = MakeTensor(type, shape, random.unchecked_values<double>());
  for (int64_t i = 0; i < random.num_elements(); ++i) values->push_back(At(random, i));
  return random;
}

Tensor Filled(ElementType type, const Shape& shape, double value) {
  return MakeTensor(type, shape, Values(shape.num_elements(), value));
}

TEST(UpdateRules, Dense) {
  for (const Rule& rule : Rules()) {
    for (const char form : rule.forms) {
      if (form == 's' || form == 'R') continue;
      for (const Type& type : kTypes) {
        if (!Serves(rule, type.type)) continue;
        SCOPED_TRACE(absl::StrCat(rule.name, " ", std::string(1, form), " ",
                                  std::string(ElementTypeName(type.type)), rule.flag_value));
        const Shape shape({5, 13});
        Update update(rule, form, type.type, shape, 2);
        Values g;
        ASSERT_TRUE(update.Run(Gradient(type.type, shape, &g)).ok());
        for (int64_t i = 0; i < shape.num_elements(); ++i) update.Expect(i, g[i]);
        update.Check(type.tolerance);
      }
    }
  }
}

TEST(UpdateRules, SparseWithRepeatedRows) {
  const std::vector<int64_t> rows = {4, 0, 4, 4, 2};
  for (const Rule& rule : Rules()) {
    for (const char form : rule.forms) {
      if (form == 'd' || form == 'r') continue;
      for (const Type& type : kTypes) {
        if (!Serves(rule, type.type)) continue;
        for (const bool wide : {false, true}) {
          SCOPED_TRACE(absl::StrCat(rule.name, " ", std::string(1, form), " ",
                                    std::string(ElementTypeName(type.type)), rule.flag_value));
          Update update(rule, form, type.type, Shape({6, 7}));
          Values g;
          const Tensor grad = Gradient(type.type, Shape({5, 7}), &g);
          const Values as_doubles(rows.begin(), rows.end());
          const Tensor indices =
              MakeTensor(wide ? ElementType::kInt64 : ElementType::kInt32, Shape({5}), as_doubles);
          const absl::Status status = update.Run(grad, indices);
          ASSERT_TRUE(status.ok()) << status;
          for (int i = 0; i < 5; ++i) {
            for (int k = 0; k < 7; ++k) update.Expect(rows[i] * 7 + k, g[i * 7 + k]);
          }
          // Three updates of one element, each rounded.
          update.Check(2 * type.tolerance);
        }
      }
    }
  }
}

TEST(UpdateRules, ManyRowsOnSeveralThreads) {
  constexpr int kRows = 97, kSize = 24, kCount = 20000;
  const Rule& rule = Find("RMSProp");
  Update update(rule, 's', ElementType::kDouble, Shape({kRows, kSize}), 4);
  Values g;
  const Tensor grad = Gradient(ElementType::kDouble, Shape({kCount, kSize}), &g);
  const Tensor indices = RandomTensor(ElementType::kInt32, Shape({kCount}), 0, kRows - 1);
  ASSERT_TRUE(update.Run(grad, indices).ok());
  for (int64_t i = 0; i < kCount; ++i) {
    const auto row = static_cast<int64_t>(At(indices, i));
    for (int k = 0; k < kSize; ++k) update.Expect(row * kSize + k, g[i * kSize + k]);
  }
  update.Check(1e-9);
}

TEST(UpdateRules, NothingToUpdate) {
  for (const Rule& rule : Rules()) {
    for (const char form : rule.forms) {
      SCOPED_TRACE(rule.name);
      const bool sparse = form == 's' || form == 'R';
      Update update(rule, form, ElementType::kFloat, Shape({sparse ? 3 : 0, 2}));
      EXPECT_TRUE(update
                      .Run(Filled(ElementType::kFloat, Shape({0, 2}), 0),
                           Filled(ElementType::kInt32, Shape({0}), 0))
                      .ok());
      update.Check(0);
    }
  }
}

TEST(UpdateRules, SameVariableTwice) {
  auto v = MakeRef<FakeVariable>("v", Tensor::Vector<float>({1, 2, 3}));
  OpTest op("ApplyMomentum");
  op.InputRef(v.get()).InputRef(v.get()).Input(Tensor::Scalar(0.5f));
  op.Input(Tensor::Vector<float>({1, 1, 1})).Input(Tensor::Scalar(0.5f));
  EXPECT_TRUE(op.Run().ok());
}

TEST(UpdateRules, BadIndicesChangeNothing) {
  const Tensor grad = Filled(ElementType::kFloat, Shape({3, 2}), 1);
  for (const Rule& rule : Rules()) {
    for (const char form : rule.forms) {
      if (form == 'd' || form == 'r') continue;
      SCOPED_TRACE(rule.name);
      for (const int32_t bad : {-1, 4}) {
        Update update(rule, form, ElementType::kFloat, Shape({4, 2}));
        const absl::Status status = update.Run(grad, Tensor::Vector<int32_t>({0, 3, bad}));
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_NE(status.message().find("indices[2]"), std::string::npos) << status;
        update.Check(0);
      }
    }
  }
}

TEST(UpdateRules, SparseShapes) {
  const Rule& rule = Find("Adagrad");
  const Tensor two = Tensor::Vector<int32_t>({0, 1});
  struct {
    Shape var, grad;
    Tensor indices;
  } cases[] = {
      {Shape({4, 2}), Shape({3, 2}), two},     // rows
      {Shape({4, 2}), Shape({2, 3}), two},     // columns
      {Shape({4, 2}), Shape({2}), two},        // rank
      {Shape({4, 2}), Shape({2, 2, 1}), two},  // rank
      {Shape({4, 2}), Shape({2, 2}), Filled(ElementType::kInt32, Shape({1, 2}), 0)},
      {Shape({4, 2}), Shape({2, 2}), Tensor::Scalar<int32_t>(0)},
      {Shape(), Shape({2}), two},
      {Shape({4, 0}), Shape({2, 0}), two},
      {Shape({0, 2}), Shape({2, 2}), two},
  };
  for (const auto& c : cases) {
    Update update(rule, 's', ElementType::kFloat, c.var);
    EXPECT_EQ(update.Run(Filled(ElementType::kFloat, c.grad, 0), c.indices).code(),
              StatusCode::kInvalidArgument)
        << c.var.ToString() << c.grad.ToString();
  }
}

TEST(UpdateRules, SlotsOfAnotherShapeOrWithoutValue) {
  for (const Rule& rule : Rules()) {
    if (rule.variables == 1) continue;
    for (const char form : rule.forms) {
      SCOPED_TRACE(rule.name);
      const Tensor grad = Filled(ElementType::kFloat, Shape({3, 2}), 1);
      const Tensor indices = Tensor::Vector<int32_t>({0, 1, 2});
      Update update(rule, form, ElementType::kFloat, Shape({3, 2}));
      FakeVariable& slot = update.variable(rule.variables - 1);
      slot.TryLend().set_value(Filled(ElementType::kFloat, Shape({3, 1}), 0));
      EXPECT_EQ(update.Run(grad, indices).code(), StatusCode::kInvalidArgument);
      slot.TryLend().set_value(Tensor());
      Update empty(rule, form, ElementType::kFloat, Shape({3, 2}));
      empty.variable(rule.variables - 1).TryLend().set_value(Tensor());
      EXPECT_EQ(empty.Run(grad, indices).code(), StatusCode::kFailedPrecondition);
    }
  }
}

TEST(UpdateRules, ScalarsOutOfRange) {
  struct {
    const char* rule;
    char form;
    int scalar;
    double value;
    bool ok;
  } cases[] = {
      {"Ftrl", 's', 0, 0, false},
      {"Ftrl", 's', 1, -1, false},
      {"Ftrl", 's', 2, -1, false},
      {"Ftrl", 's', 3, 0.5, false},
      {"Ftrl", 's', 3, 0, true},
      {"Ftrl", 'R', 0, -1, false},
      {"FtrlV2", 'R', 3, -1, false},
      {"Ftrl", 'd', 1, -1, true},
      {"Ftrl", 'd', 3, 0.5, true},
      {"ProximalAdagrad", 'd', 1, -1, false},
      {"ProximalAdagrad", 's', 2, -1, false},
      {"ProximalAdagrad", 'r', 0, 0, false},
      {"ProximalGradientDescent", 's', 1, -1, true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.rule, " ", c.scalar, " ", c.value));
    const Rule& rule = Find(c.rule);
    Update update(rule, c.form, ElementType::kFloat, Shape({3, 2}));
    Values scalars = rule.scalars;
    scalars[c.scalar] = c.value;
    const absl::Status status = update.Run(Filled(ElementType::kFloat, Shape({3, 2}), 1),
                                           Tensor::Vector<int32_t>({0, 1, 2}), scalars);
    EXPECT_EQ(status.code(), c.ok ? StatusCode::kOk : StatusCode::kInvalidArgument) << status;
  }
}

}  // namespace
}  // namespace troupe::testing
