// Every optimizer, dense and sparse, against its formula in plain doubles and against TensorFlow.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <set>

#include "api/troupe.h"

namespace troupe {
namespace {

constexpr int kRows = 4, kColumns = 2, kSteps = 4;
using Matrix = std::array<double, kRows * kColumns>;

/// Element i of the gradient of step k.
double GradientAt(int k, int i) { return ((k * 7 + i * 3) % 11 - 5) / 4.0; }
/// The rows of the sparse gradient of step k; one occurs twice.
std::vector<int32_t> RowsAt(int k) { return {k % 4, (k + 2) % 4, k % 4}; }
Matrix Start() {
  Matrix w;
  for (int i = 0; i < kRows * kColumns; ++i) w[i] = 0.1 * i - 0.3;
  return w;
}
double Sign(double x) { return (x > 0) - (x < 0); }

/// One variable, trained by given gradients.
class Trainer {
 public:
  using Make = std::function<std::unique_ptr<Optimizer>(const ModelVariable& step)>;

  Trainer(const Make& make, bool sparse) : sparse_(sparse) {
    const Matrix start = Start();
    w_ = ModelVariable(s_, Const(s_, *MakeTensor<double>(start, {kRows, kColumns})), "w");
    values_ = ops::Placeholder(s_, ElementType::kDouble, {.shape = PartialShape({-1, kColumns})});
    rows_ = ops::Placeholder(s_, ElementType::kInt32, {.shape = PartialShape({-1})});
    step_ = GlobalStep(s_);
    optimizer_ = make(step_);
    Gradient gradient(values_);
    if (sparse) {
      gradient = Gradient(values_, rows_, Const(s_, Tensor::Vector<int32_t>({kRows, kColumns})));
    }
    train_ = optimizer_->ApplyGradients(s_, {{gradient, w_}}, step_);
    Node* init = GlobalVariablesInitializer(s_);
    EXPECT_TRUE(s_.ok()) << s_.status();
    if (!s_.ok()) return;
    session_ = *Session::Create(s_.graph());
    const absl::Status status = session_->RunTargets({init});
    EXPECT_TRUE(status.ok()) << status;
  }

  /// The variable after step k.
  Matrix Step(int k) {
    Matrix w = {};
    if (session_ == nullptr) return w;
    const int rows = sparse_ ? 3 : kRows;
    std::vector<double> values;
    for (int i = 0; i < rows * kColumns; ++i) values.push_back(GradientAt(k, i));
    FeedMap feeds = {{values_, *MakeTensor<double>(values, {rows, kColumns})}};
    if (sparse_) feeds.emplace_back(rows_, Tensor::Vector<int32_t>(RowsAt(k)));
    const absl::Status status = session_->RunTargets({train_}, feeds);
    EXPECT_TRUE(status.ok()) << status;
    auto result = session_->Run({w_.value(), step_.value()});
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return w;
    EXPECT_EQ((*result)[1].unchecked_scalar<int64_t>(), k + 1);
    auto span = (*result)[0].unchecked_values<double>();
    std::copy(span.begin(), span.end(), w.begin());
    return w;
  }

  /// Names of the variables besides "w" and "global_step".
  std::set<std::string> OtherVariables() const {
    std::set<std::string> names;
    for (const std::string& handle : s_.graph()->Collection(collections::kVariables)) {
      names.insert(ModelVariable::FromHandle(*s_.graph(), handle).name());
    }
    names.erase("w");
    names.erase("global_step");
    return names;
  }
  const Optimizer& optimizer() const { return *optimizer_; }
  const ModelVariable& w() const { return w_; }

 private:
  bool sparse_;
  Scope s_ = Scope::NewRoot();
  ModelVariable w_, step_;
  Output values_, rows_;
  std::unique_ptr<Optimizer> optimizer_;
  Node* train_ = nullptr;
  std::unique_ptr<Session> session_;
};

/// One element of the variable and of its slots.
struct Element {
  double w, a, b, c;
};

struct Case {
  const char* name;
  Trainer::Make make;
  std::vector<double> slots;  // Initial values of a, b, c.
  /// Step t (from 1) with gradient g.
  std::function<void(Element& e, double g, int t)> rule;
  std::vector<std::string> slot_names;
  std::set<std::string> variables;
  bool all_rows = false;  // A sparse gradient counts as zero elsewhere.
};

template <typename O, typename... Args>
Trainer::Make Maker(Args... args) {
  return [=](const ModelVariable&) { return std::make_unique<O>(args...); };
}

const std::vector<Case>& Cases() {
  static const auto* cases = new std::vector<Case>{
      {"GradientDescent",
       Maker<GradientDescentOptimizer>(0.1),
       {},
       [](Element& e, double g, int) { e.w -= 0.1 * g; },
       {},
       {}},
      {"Momentum",
       Maker<MomentumOptimizer>(0.1, 0.9),
       {0},
       [](Element& e, double g, int) {
         e.a = 0.9 * e.a + g;
         e.w -= 0.1 * e.a;
       },
       {"momentum"},
       {"w/Momentum"}},
      {"Nesterov",
       Maker<MomentumOptimizer>(0.1, 0.9, true),
       {0},
       [](Element& e, double g, int) {
         e.a = 0.9 * e.a + g;
         e.w -= 0.1 * (g + 0.9 * e.a);
       },
       {"momentum"},
       {"w/Momentum"}},
      {"Adagrad",
       Maker<AdagradOptimizer>(0.1),
       {0.1},
       [](Element& e, double g, int) {
         e.a += g * g;
         e.w -= 0.1 * g / std::sqrt(e.a);
       },
       {"accumulator"},
       {"w/Adagrad"}},
      {"AdagradDA",
       [](const ModelVariable& step) {
         return std::make_unique<AdagradDAOptimizer>(0.1, step, 0.1, 0.05, 0.02);
       },
       {0, 0.1},
       [](Element& e, double g, int t) {
         e.a += g;
         e.b += g * g;
         e.w = -Sign(e.a) * 0.1 * std::max(std::abs(e.a) - 0.05 * t, 0.0) /
               (0.02 * t * 0.1 + std::sqrt(e.b));
       },
       {"gradient_accumulator", "gradient_squared_accumulator"},
       {"w/AdagradDA", "w/AdagradDA_1"}},
      {"Adadelta",
       Maker<AdadeltaOptimizer>(0.5, 0.95, 1e-8),
       {0, 0},
       [](Element& e, double g, int) {
         e.a = 0.95 * e.a + 0.05 * g * g;
         const double update = std::sqrt((e.b + 1e-8) / (e.a + 1e-8)) * g;
         e.b = 0.95 * e.b + 0.05 * update * update;
         e.w -= 0.5 * update;
       },
       {"accum", "accum_update"},
       {"w/Adadelta", "w/Adadelta_1"}},
      {"RMSProp",
       Maker<RMSPropOptimizer>(0.1, 0.9, 0.5, 1e-10),
       {1, 0},
       [](Element& e, double g, int) {
         e.a = 0.9 * e.a + 0.1 * g * g;
         e.b = 0.5 * e.b + 0.1 * g / std::sqrt(e.a + 1e-10);
         e.w -= e.b;
       },
       {"rms", "momentum"},
       {"w/RMSProp", "w/RMSProp_1"}},
      {"CenteredRMSProp",
       Maker<RMSPropOptimizer>(0.1, 0.9, 0.5, 1e-10, true),
       {1, 0, 0},
       [](Element& e, double g, int) {
         e.a = 0.9 * e.a + 0.1 * g * g;
         e.b = 0.9 * e.b + 0.1 * g;
         e.c = 0.5 * e.c + 0.1 * g / std::sqrt(e.a - e.b * e.b + 1e-10);
         e.w -= e.c;
       },
       {"rms", "mg", "momentum"},
       {"w/RMSProp", "w/RMSProp_1", "w/RMSProp_2"}},
      {"Adam",
       Maker<AdamOptimizer>(0.1, 0.9, 0.999, 1e-8),
       {0, 0},
       [](Element& e, double g, int t) {
         e.a = 0.9 * e.a + 0.1 * g;
         e.b = 0.999 * e.b + (1 - 0.999) * g * g;
         const double rate = 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
         e.w -= rate * e.a / (std::sqrt(e.b) + 1e-8);
       },
       {"m", "v"},
       {"w/Adam", "w/Adam_1", "beta1_power", "beta2_power"},
       /*all_rows=*/true},
      {"AdaMax",
       Maker<AdaMaxOptimizer>(0.1, 0.9, 0.999, 1e-8),
       {0, 0},
       [](Element& e, double g, int t) {
         e.a = 0.9 * e.a + 0.1 * g;
         e.b = std::max(0.999 * e.b, std::abs(g));
         e.w -= 0.1 / (1 - std::pow(0.9, t)) * e.a / (e.b + 1e-8);
       },
       {"m", "v"},
       {"w/AdaMax", "w/AdaMax_1", "beta1_power"}},
      {"Ftrl",
       Maker<FtrlOptimizer>(0.1, FtrlOptions{.l1 = 0.05, .l2 = 0.02}),
       {0.1, 0},
       [](Element& e, double g, int) {
         const double next = e.a + g * g;
         e.b += g - (std::sqrt(next) - std::sqrt(e.a)) / 0.1 * e.w;
         const double quadratic = std::sqrt(next) / 0.1 + 2 * 0.02;
         e.w = std::abs(e.b) > 0.05 ? (Sign(e.b) * 0.05 - e.b) / quadratic : 0;
         e.a = next;
       },
       {"accum", "linear"},
       {"w/Ftrl", "w/Ftrl_1"}},
      {"FtrlShrinkage",
       Maker<FtrlOptimizer>(0.1, FtrlOptions{.l2_shrinkage = 0.03}),
       {0.1, 0},
       [](Element& e, double g, int) {
         const double next = e.a + g * g;
         e.b += g + 2 * 0.03 * e.w - (std::sqrt(next) - std::sqrt(e.a)) / 0.1 * e.w;
         e.w = -e.b / (std::sqrt(next) / 0.1);
         e.a = next;
       },
       {"accum", "linear"},
       {"w/Ftrl", "w/Ftrl_1"}},
      {"ProximalGradientDescent",
       Maker<ProximalGradientDescentOptimizer>(0.1, 0.05, 0.02),
       {},
       [](Element& e, double g, int) {
         const double p = e.w - 0.1 * g;
         e.w = Sign(p) * std::max(std::abs(p) - 0.1 * 0.05, 0.0) / (1 + 0.1 * 0.02);
       },
       {},
       {}},
      {"ProximalAdagrad",
       Maker<ProximalAdagradOptimizer>(0.1, 0.1, 0.05, 0.02),
       {0.1},
       [](Element& e, double g, int) {
         e.a += g * g;
         const double rate = 0.1 / std::sqrt(e.a), p = e.w - rate * g;
         e.w = Sign(p) * std::max(std::abs(p) - rate * 0.05, 0.0) / (1 + rate * 0.02);
       },
       {"accumulator"},
       {"w/ProximalAdagrad"}},
  };
  return *cases;
}

class OptimizersTest : public testing::TestWithParam<Case> {};

TEST_P(OptimizersTest, FollowsItsFormula) {
  const Case& c = GetParam();
  for (const bool sparse : {false, true}) {
    SCOPED_TRACE(sparse ? "sparse" : "dense");
    Trainer trainer(c.make, sparse);
    std::array<Element, kRows * kColumns> elements;
    for (int i = 0; i < kRows * kColumns; ++i) {
      elements[i] = {Start()[i], c.slots.empty() ? 0 : c.slots[0],
                     c.slots.size() < 2 ? 0 : c.slots[1], 0};
    }
    for (int k = 0; k < kSteps; ++k) {
      Matrix gradient = {};
      std::set<int> rows = {0, 1, 2, 3};
      if (sparse) {
        rows.clear();
        for (int r = 0; r < 3; ++r) {
          const int row = RowsAt(k)[r];
          rows.insert(row);
          for (int j = 0; j < kColumns; ++j) {
            gradient[row * kColumns + j] += GradientAt(k, r * kColumns + j);
          }
        }
      } else {
        for (int i = 0; i < kRows * kColumns; ++i) gradient[i] = GradientAt(k, i);
      }
      const Matrix got = trainer.Step(k);
      for (int i = 0; i < kRows * kColumns; ++i) {
        if (c.all_rows || rows.count(i / kColumns) != 0) c.rule(elements[i], gradient[i], k + 1);
        EXPECT_NEAR(got[i], elements[i].w, 1e-9) << "step " << k << " element " << i;
      }
    }
  }
}

TEST_P(OptimizersTest, NamesItsSlotsAsTensorFlowDoes) {
  const Case& c = GetParam();
  Trainer trainer(c.make, false);
  EXPECT_EQ(trainer.OtherVariables(), c.variables);
  EXPECT_EQ(trainer.optimizer().SlotNames(), c.slot_names);
  for (const std::string& slot : c.slot_names) {
    EXPECT_TRUE(trainer.optimizer().GetSlot(trainer.w(), slot).valid()) << slot;
  }
  EXPECT_FALSE(trainer.optimizer().GetSlot(trainer.w(), "no such slot").valid());
}

INSTANTIATE_TEST_SUITE_P(All, OptimizersTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

/// tf.compat.v1.train's optimizers of TensorFlow 2.21 on the same gradients: the variable after
/// four steps. Hyper-parameters are floats there.
struct Recorded {
  const char* name;
  bool sparse;
  Matrix w;
};
const Recorded kTensorFlow[] = {
    {"GradientDescent",
     false,
     {-0.29999999999999999, -0.22500000037252899, -0.15000000074505804, -0.075000001117587034,
      0.27500000260770324, 0.35000000223517419, 0.14999999776482592, 0.22499999739229687}},
    {"GradientDescent",
     true,
     {-0.17499999813735484, -0.024999997392296774, -0.22500000186264513, -0.075000001117587034,
      0.15000000074505809, 0.024999997392296802, 0.37500000111758719, 0.52500000186264528}},
    {"Momentum",
     false,
     {-0.035625009501352861, -0.3392999993696808, -0.17272500058896836, -0.22889999332576988,
      0.41314999660775076, 0.57972499538846312, 0.0010500014223159548, -0.055124991314485644}},
    {"Momentum",
     true,
     {0.027499999515712192, 0.042500001825392236, -0.33750000055879348, -0.075000001117587034,
      0.12750000100582842, -0.065000001564621879, 0.4425000003352762, 0.52500000186264528}},
    {"Nesterov",
     false,
     {-0.062062514854408529, -0.35036999648407097, -0.21545249954123047, -0.28100998965337887,
      0.5568349920886011, 0.6917524890314416, -0.11905499382756646, -0.18461248393971488}},
    {"Nesterov",
     true,
     {0.11974999361857767, 0.19324999846890564, -0.43874999670311798, -0.14250000033527604,
      0.17475000099465254, -0.2134999976977705, 0.50324999802187087, 0.63750000055879363}},
    {"Adagrad",
     false,
     {-0.26997418403745732, -0.17657910506696783, -0.15007303387623311, -0.072303560045422904,
      0.22515435954793217, 0.35513241586907601, 0.17827170695644029, 0.27845520876105756}},
    {"Adagrad",
     true,
     {-0.24125623301966384, -0.030299056513218112, -0.19694584323579073, -0.092144268898149209,
      0.12606566602101002, 0.046486233713196351, 0.39214426889814935, 0.49694584323579083}},
    {"AdagradDA",
     false,
     {-0, -0.003123139187379457, -0.022703321633948285, -0.0335423760971248, 0.085111223850367915,
      0.086687276852834783, -0.086687276852834783, -0.085111223850367915}},
    {"AdagradDA",
     true,
     {0.044204431609061942, 0.1235159101861371, -0.080932360518278734, -0.066914776767596607,
      0.040817787357556257, -0.1235159101861371, 0.066914776767596607, 0.080932360518278734}},
    {"Adadelta",
     false,
     {-0.30001455005655381, -0.19993693509855562, -0.10026658442959681, -0.0001836187395229781,
      0.1003724855635828, 0.20053496224632972, 0.29957388376641897, 0.39967224649270033}},
    {"Adadelta",
     true,
     {-0.2999075936559249, -0.19952110308081011, -0.10022360675610364, -0.00022360673066214448,
      0.10007714608607571, 0.19958354599319403, 0.30022360673066228, 0.40022360675610374}},
    {"RMSProp",
     false,
     {-0.20859799248179134, -0.28138318382908079, -0.16815289078138101, -0.11042419662388755,
      0.32273041548464165, 0.44678864915314376, 0.075122938267503367, 0.14074308148354239}},
    {"RMSProp",
     true,
     {-0.10096752496771605, 0.017073618119600842, -0.28243909733066241, -0.080582298970964902,
      0.14093000445816201, -0.026696502669572048, 0.41504475066284691, 0.52716431824628684}},
    {"CenteredRMSProp",
     false,
     {-0.30227936205468192, -0.21985691843966232, -0.15230631903783581, -0.075975392594902921,
      0.28163963385535234, 0.35683597808058148, 0.14360520973983096, 0.22493640535334769}},
    {"CenteredRMSProp",
     true,
     {-0.1926566051094547, -0.019524661282739109, -0.22253577181807704, -0.080845211057199592,
      0.15417885015428803, 0.021684038194812419, 0.37692307859581681, 0.52820513099302802}},
    {"Adam",
     false,
     {-0.12711249877839889, -0.19408078220182692, -0.19867889757760157, -0.1794544985991135,
      0.2802404620332869, 0.47438963201153811, 0.098418908486421847, 0.15175484926117347}},
    {"Adam",
     true,
     {-0.094142679491190498, 0.1165033984560829, -0.27905335077993382, -0.058112636499563677,
      0.013481511447451452, -0.11212655201134382, 0.47905332056873501, 0.45811264630059995}},
    {"Ftrl",
     false,
     {-0.19198520158778076, -0.061028959651748642, -0.062803282139896097, -0.067269656272595985,
      0.1895967305558626, 0.18464738003576647, 0.0090937385942495719, 0.17590162307409826}},
    {"Ftrl",
     true,
     {-0.19696155151062283, 0.045692640929567097, -0.16802118929274812, -0.085580742890249042,
      0.048197038108252432, -0.010822167874736785, 0.26812932977001985, 0.092780180564116951}},
    {"FtrlShrinkage",
     false,
     {-0.19337684230374777, -0.066773590323203444, -0.069271903064412582, -0.07127218793348096,
      0.19277113196605933, 0.19331024204085509, 0.013871008592750079, 0.17606959514685486}},
    {"FtrlShrinkage",
     true,
     {-0.19832776271229943, 0.049011573537885572, -0.17115475448592327, -0.092144268898149251,
      0.046426417596039028, -0.015161251239571349, 0.27136328207280114, 0.089391693733360658}},
    {"ProximalGradientDescent",
     true,
     {-0.16453121486120717, -0.014731014112493394, -0.21413261458200644, -0.06986028040879888,
      0.13958111765699849, 0.014780814711269932, 0.36353440905633472, 0.51318520800871892}},
    {"ProximalAdagrad",
     true,
     {-0.2366759963422124, -0.019997937859877069, -0.18859862358250851, -0.085790514771127854,
      0.10741141158397877, 0.037592662193258727, 0.37798344264058814, 0.4741066668185045}},
};

TEST(OptimizersTensorFlowTest, GivesTheSameNumbers) {
  const std::map<std::string, Trainer::Make> makers = {
      {"GradientDescent", Maker<GradientDescentOptimizer>(0.1f)},
      {"Momentum", Maker<MomentumOptimizer>(0.1f, 0.9f)},
      {"Nesterov", Maker<MomentumOptimizer>(0.1f, 0.9f, true)},
      {"Adagrad", Maker<AdagradOptimizer>(0.1f)},
      {"AdagradDA",
       [](const ModelVariable& step) {
         return std::make_unique<AdagradDAOptimizer>(0.1f, step, 0.1, 0.05f, 0.02f);
       }},
      {"Adadelta", Maker<AdadeltaOptimizer>(0.5f)},
      {"RMSProp", Maker<RMSPropOptimizer>(0.1f, 0.9f, 0.5f)},
      {"CenteredRMSProp", Maker<RMSPropOptimizer>(0.1f, 0.9f, 0.0f, 1e-10f, true)},
      {"Adam", Maker<AdamOptimizer>(0.1f)},
      {"Ftrl", Maker<FtrlOptimizer>(0.1f, FtrlOptions{.l1 = 0.05f, .l2 = 0.02f})},
      {"FtrlShrinkage", Maker<FtrlOptimizer>(0.1f, FtrlOptions{.l2_shrinkage = 0.03})},
      {"ProximalGradientDescent", Maker<ProximalGradientDescentOptimizer>(0.1f, 0.05f, 0.02f)},
      {"ProximalAdagrad", Maker<ProximalAdagradOptimizer>(0.1f, 0.1, 0.05f, 0.02f)},
  };
  for (const Recorded& recorded : kTensorFlow) {
    SCOPED_TRACE(std::string(recorded.name) + (recorded.sparse ? " sparse" : " dense"));
    Trainer trainer(makers.at(recorded.name), recorded.sparse);
    Matrix got = {};
    for (int k = 0; k < kSteps; ++k) got = trainer.Step(k);
    for (int i = 0; i < kRows * kColumns; ++i) EXPECT_NEAR(got[i], recorded.w[i], 1e-7) << i;
  }
}

TEST(OptimizersErrors, AreInTheScope) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, 1.0f), "w");
  AdagradDAOptimizer no_step(0.1f, ModelVariable());
  EXPECT_EQ(no_step.Minimize(s, w.value()), nullptr);
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(s.status().message()), testing::HasSubstr("AdagradDA"));

  Scope t = Scope::NewRoot();
  const ModelVariable v(t, Const(t, 1.0f), "v");
  MomentumOptimizer momentum(0.1f, 0.9f);
  EXPECT_EQ(momentum.ApplyGradients(t, {{Gradient(Const(t, 1.0)), v}}), nullptr);
  EXPECT_EQ(t.status().code(), absl::StatusCode::kInvalidArgument) << t.status();
}

TEST(OptimizersTwice, ASecondOptimizerHasSlotsOfItsOwn) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, 1.0f), "w");
  AdamOptimizer first, second;
  first.Minimize(s, w.value());
  second.Minimize(s, w.value());
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(first.GetSlot(w, "v").name(), "w/Adam_1");
  EXPECT_EQ(second.GetSlot(w, "m").name(), "w/Adam_2");
}

TEST(OptimizersGate, UpdatesComeAfterReads) {
  // The gradient of each factor is the other: both are of the values from before the step.
  for (const GateGradients gate :
       {GateGradients::kNone, GateGradients::kOp, GateGradients::kGraph}) {
    SCOPED_TRACE(static_cast<int>(gate));
    Scope s = Scope::NewRoot();
    const ModelVariable a(s, Const(s, 2.0), "a"), b(s, Const(s, 3.0), "b");
    const Output loss = ops::Mul(s, a.value(), b.value());
    GradientDescentOptimizer optimizer(1.0);
    Node* train = optimizer.ApplyGradients(s, optimizer.ComputeGradients(s, loss, {}, gate));
    Node* init = GlobalVariablesInitializer(s);
    ASSERT_TRUE(s.ok()) << s.status();
    auto session = *Session::Create(s.graph());
    ASSERT_TRUE(session->RunTargets({init}).ok());
    ASSERT_TRUE(session->RunTargets({train}).ok());
    auto values = session->Run({a.value(), b.value()});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_scalar<double>(), -1.0);
    EXPECT_EQ((*values)[1].unchecked_scalar<double>(), 1.0);
  }
}

TEST(OptimizersGate, AllGradientsComeBeforeTheFirstUpdateOfRows) {
  // The same with rows that are looked up: what reads them is no single node.
  Scope s = Scope::NewRoot();
  const ModelVariable table(s, Const(s, *MakeTensor<double>(std::vector<double>{2, 3}, {2, 1})),
                            "table");
  const Output loss =
      ReduceSum(s, ops::Mul(s, EmbeddingLookup(s, table, {0}), EmbeddingLookup(s, table, {1})));
  GradientDescentOptimizer optimizer(1.0);
  Node* train =
      optimizer.ApplyGradients(s, optimizer.ComputeGradients(s, loss, {}, GateGradients::kGraph));
  Node* init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  ASSERT_TRUE(session->RunTargets({init}).ok());
  ASSERT_TRUE(session->RunTargets({train}).ok());
  auto values = session->Run({table.value()});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_values<double>()[0], -1.0);
  EXPECT_EQ((*values)[0].unchecked_values<double>()[1], 1.0);
}

}  // namespace
}  // namespace troupe
