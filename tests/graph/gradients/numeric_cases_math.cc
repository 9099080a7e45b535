#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {
namespace {

void AddSpecialCases(std::vector<Case>* cases) {
  for (const char* op :
       {"Acos", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Dawsn", "Digamma", "Erfc", "Erfinv",
        "Expint", "FresnelCos", "FresnelSin", "Lgamma", "Ndtri", "Sinh", "Spence"}) {
    cases->push_back({op, {X({2, 3}, 0.2, 0.8)}});
  }
  cases->push_back({"Acosh", {X({2, 3}, 1.5, 3)}});
  for (const char* op : {"Atan2", "MulNoNan", "NextAfter", "Xdivy", "Xlog1py", "Xlogy"}) {
    cases->push_back({op, {X({2, 3}, 0.5, 2), X({3}, 0.5, 2)}});
  }
  // The gradient for the first input has none.
  for (const char* op : {"Igamma", "Igammac"}) {
    cases->push_back(Once({op, {X({2, 3}, 0.5, 2), X({3}, 0.5, 2)}}));
  }
  for (const char* op : {"Polygamma", "Zeta"}) {
    cases->push_back({op, {C(Tensor::Scalar(2.0)), X({2, 3}, 0.5, 2)}});
  }
  for (const bool reverse : {false, true}) {
    cases->push_back(
        Once({"CumulativeLogsumexp", {X({3, 2}), I(0)}, Bools({{"reverse", reverse}})}));
  }
  cases->push_back({"CheckNumericsV2", {X({2})}, Text("message", "bad")});
  cases->push_back(
      {"Betainc", {C(Tensor::Scalar(1.5)), C(Tensor::Scalar(2.5)), X({2, 3}, 0.2, 0.8)}});
}

}  // namespace

void AddMathCases(std::vector<Case>* cases) {
  for (const char* op : {"Abs", "Reciprocal", "Inv", "Log", "Log1p", "Rsqrt", "Sqrt"}) {
    cases->push_back({op, {X({2, 3}, 0.5, 2)}});
  }
  for (const char* op :
       {"Cos",    "Elu",  "Erf",       "Exp",     "Expm1",   "Neg",        "Relu",
        "Relu6",  "Selu", "LeakyRelu", "Sigmoid", "Sign",    "Sin",        "Softplus",
        "Square", "Tan",  "Tanh",      "L2Loss",  "Softmax", "LogSoftmax", "Ceil",
        "Floor",  "Rint", "Round",     "Identity"}) {
    cases->push_back({op, {Distinct({2, 3})}});
  }
  cases->push_back(Once({"Softsign", {Distinct({2, 3})}}));
  for (const char* op :
       {"EluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "LeakyReluGrad", "SoftplusGrad"}) {
    cases->push_back({op, {X({2, 3}), Distinct({2, 3})}});
  }
  for (const char* op :
       {"InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"}) {
    cases->push_back({op, {X({2, 3}, 0.5, 1), X({2, 3})}});
  }
  for (const char* op : {"Add", "AddV2", "Div", "DivNoNan", "FloorDiv", "FloorMod", "Maximum",
                         "Minimum", "Mul", "Pow", "RealDiv", "SquaredDifference", "Sub"}) {
    cases->push_back({op, {X({2, 3}, 1, 1.4), X({2, 3}, 0.5, 0.9)}});
    cases->push_back({op, {X({2, 3}, 1, 1.4), X({3}, 0.5, 0.9)}});
    cases->push_back({op, {X({2, 1}, 1, 1.4), X({4, 1, 3}, 0.5, 0.9)}});
    cases->push_back({op, {X({}, 1, 1.4), X({2, 2}, 0.5, 0.9)}});
  }
  cases->push_back({"TruncateDiv", {C(Tensor::Scalar<int32_t>(7)), I(2)}});
  cases->push_back({"AddN", {X({2, 3}), X({2, 3}), X({2, 3})}, nullptr, {3}});
  cases->push_back({"Cast", {X({2, 3})}, Type("DstT", kFloat), {}, {}, ElementType::kDouble});
  cases->push_back({"ClipByValue", {X({6}, -3, 3), X({}, -1, -0.9), X({}, 0.9, 1)}});
  cases->push_back({"Select", {B({true, false}), X({2, 3}), X({2, 3})}});
  cases->push_back({"SelectV2", {B({true, false, true}), X({2, 3}), X({3})}});
  cases->push_back({"SelectV2", {B({true, false, true}), X({}), X({2, 1})}});
  AddSpecialCases(cases);
}

}  // namespace troupe::numeric
