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
  for (bool keep : {false, true}) {
    cases->push_back({"EuclideanNorm", {X({2, 3, 2}), I({2, 0})}, Bools({{"keep_dims", keep}})});
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
  for (const char* op : {"UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"}) {
    cases->push_back({op, {Distinct({4, 2}), I({1, 0, -1, 1}), I(2)}});
    cases->push_back({op, {Distinct({2, 2}), I({1, 0, -1, 1}, {2, 2}), I(2)}});
  }
  // Without num_segments the number of results is not known.
  for (const char* rule : {"Mean", "SqrtN", "Sum"}) {
    for (bool sparse : {false, true}) {
      cases->push_back(Once({std::string("SparseSegment") + rule + "WithNumSegments",
                             {X({4, 2}), I({3, 1, 3}), I({0, 0, 2}), I(5)},
                             Bools({{"sparse_gradient", sparse}})}));
    }
  }
  for (const char* op : {"ArgMax", "ArgMin"}) cases->push_back({op, {Distinct({2, 3}), I(1)}});
}

}  // namespace troupe::numeric
