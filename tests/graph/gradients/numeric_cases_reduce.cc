#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

void AddReductionCases(std::vector<Case>* cases) {
  for (const char* op : {"Max", "Mean", "Min", "Prod", "Sum"}) {
    for (bool keep : {false, true}) {
      cases->push_back({op, {Distinct({2, 3, 2}), I({1})}, Bools({{"keep_dims", keep}})});
      cases->push_back({op, {Distinct({2, 3, 2}), I({2, 0})}, Bools({{"keep_dims", keep}})});
      cases->push_back({op, {Distinct({2, 3}), I({-2, -1})}, Bools({{"keep_dims", keep}})});
    }
    cases->push_back({op, {Distinct({2, 3}), I(0)}});
    cases->push_back({op, {Distinct({3}), C(Tensor::Vector<int32_t>({}))}});
  }
  for (const char* op : {"Cumsum", "Cumprod"}) {
    for (bool exclusive : {false, true}) {
      for (bool reverse : {false, true}) {
        cases->push_back({op,
                          {X({3, 2}, 0.5, 1.5), I(0)},
                          Bools({{"exclusive", exclusive}, {"reverse", reverse}})});
      }
    }
  }
  cases->push_back({"UnsortedSegmentSum", {X({4, 2}), I({1, 0, -1, 1}), I(3)}});
  cases->push_back({"UnsortedSegmentSum", {X({2, 2}), I({1, 0, -1, 1}, {2, 2}), I(2)}});
  for (const char* op : {"ArgMax", "ArgMin"}) cases->push_back({op, {Distinct({2, 3}), I(1)}});
}

}  // namespace troupe::numeric
