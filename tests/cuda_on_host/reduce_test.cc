// Reductions, scans, softmax and sorting of cards against the CPU's: axes at either end and in the
// middle, nothing to reduce, sizes around those of blocks.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Reductions : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

std::vector<ElementType> SharedTypes(const char* op) {
  std::vector<ElementType> types;
  const std::set<ElementType> here = KernelTypes(op, "CPU");
  for (const ElementType type : KernelTypes(op, "GPU")) {
    if (type != kInt32 && here.count(type) != 0) types.push_back(type);
  }
  EXPECT_FALSE(types.empty()) << op;
  return types;
}

struct Case {
  std::vector<int64_t> dims;
  std::vector<int32_t> axes;
};
std::vector<Case> Cases() {
  return {{{}, {}},
          {{1}, {0}},
          {{31}, {0}},
          {{255}, {0}},
          {{257}, {0}},
          {{8193}, {0}},
          {{20'001}, {0}},
          {{33, 65}, {0}},
          {{33, 65}, {1}},
          {{33, 65}, {0, 1}},
          {{33, 65}, {}},
          {{5, 7, 11, 3}, {1}},
          {{5, 7, 11, 3}, {-1}},
          {{5, 7, 11, 3}, {0, 2}},
          {{5, 7, 11, 3}, {3, 1}},
          {{5, 7, 11, 3}, {1, 2}},
          {{2, 3000}, {1}},
          {{3000, 2}, {0}},
          {{64, 16, 32}, {0, 1}},
          {{300, 4}, {0}},
          {{4, 0, 3}, {1}},
          {{4, 0, 3}, {0}},
          {{0}, {0}},
          {{2, 1, 3}, {1}}};
}
Operand Axes(const Case& c) { return OnHost(Tensor::Vector<int32_t>(absl::MakeConstSpan(c.axes))); }
bool IsSmall(ElementType type) { return type == kHalf || type == kBfloat16; }
int64_t Length(const Case& c) { return Shape(c.dims).num_elements(); }

TEST_F(Reductions, SumsAndProducts) {
  for (const char* op : {"Sum", "Mean", "Prod"}) {
    AgainstCpu both;
    for (const ElementType type : SharedTypes(op)) {
      for (const Case& c : Cases()) {
        const bool product = std::string(op) == "Prod";
        // Products of many numbers leave the range.
        if (product && Length(c) > (IsComplex(type) ? 50 : 300) && type != kInt64) continue;
        if (product && IsSmall(type) && Length(c) > 5) continue;
        for (const bool keep_dims : {false, true}) {
          const Tensor x =
              Numbers(type, Shape(c.dims), 1, type == kInt64 ? Values::kAny : Values::kPositive);
          for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
            // Positive numbers: the order costs no more than some places.
            both.Add(op, {{x, as}, Axes(c)},
                     {product         ? 300.0
                      : IsSmall(type) ? 1.0
                                      : 64.0},
                     [keep_dims](NodeSpec& node) { node.Attr("keep_dims", keep_dims); });
          }
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Reductions, Norms) {
  AgainstCpu both;
  for (const ElementType type : SharedTypes("EuclideanNorm")) {
    for (const Case& c : Cases()) {
      for (const bool keep_dims : {false, true}) {
        const auto attrs = [keep_dims](NodeSpec& node) { node.Attr("keep_dims", keep_dims); };
        // The CPU adds squares of complex numbers one by one.
        const Within within{IsSmall(type) ? 1.0 : IsComplex(type) ? 500.0 : 64.0};
        both.Add("EuclideanNorm",
                 {{Numbers(type, Shape(c.dims), 1, Values::kModerate), Operand::kView}, Axes(c)},
                 within, attrs);
        // The CPU squares complex numbers in another way where they leave the range.
        if (!IsComplex(type)) {
          both.Add("EuclideanNorm", {{Numbers(type, Shape(c.dims), 2)}, Axes(c)}, within, attrs);
        }
      }
    }
  }
  both.Compare();
}

TEST_F(Reductions, Extremes) {
  for (const char* op : {"Max", "Min"}) {
    AgainstCpu both;
    for (const ElementType type : SharedTypes(op)) {
      for (const Case& c : Cases()) {
        for (const uint64_t seed : {1, 2}) {
          both.Add(op, {{Numbers(type, Shape(c.dims), seed)}, Axes(c)});
          both.Add(
              op,
              {{Numbers(type, Shape(c.dims), seed, Values::kModerate), Operand::kView}, Axes(c)},
              {}, [](NodeSpec& node) { node.Attr("keep_dims", true); });
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Reductions, OfBools) {
  AgainstCpu both;
  for (const char* op : {"All", "Any"}) {
    for (const Case& c : Cases()) {
      both.Add(op, {{Numbers(kBool, Shape(c.dims), 1)}, Axes(c)});
      for (const bool value : {false, true}) {
        Tensor same = *Tensor::Allocate(kBool, Shape(c.dims));
        std::fill_n(same.mutable_data<bool>(), same.num_elements(), value);
        if (same.num_elements() > 5) same.mutable_data<bool>()[5] = !value;
        both.Add(op, {{same, Operand::kView}, Axes(c)});
      }
    }
  }
  both.Compare();
}

TEST_F(Reductions, PlacesOfExtremes) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    AgainstCpu both;
    for (const ElementType type : SharedTypes(op)) {
      for (const Case& c : Cases()) {
        if (c.dims.empty()) continue;
        for (int32_t axis = 0; axis < static_cast<int32_t>(c.dims.size()); ++axis) {
          if (c.dims[axis] == 0) continue;
          // Few values, so that there are several largest ones; then all that there are.
          for (const auto& [to, values] :
               {std::pair{kInt32, Values::kModerate}, {kInt64, Values::kAny}}) {
            both.Add(op, {{Numbers(type, Shape(c.dims), 1, values)}, HostInt(axis)}, {},
                     [to = to](NodeSpec& node) { node.Attr("output_type", to); });
          }
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Reductions, SumsOfSquaresAndBiases) {
  AgainstCpu both;
  for (const ElementType type : SharedTypes("L2Loss")) {
    for (const Case& c : Cases()) {
      if (IsSmall(type) && Length(c) > 1000) continue;  // They overflow.
      both.Add("L2Loss", {{Numbers(type, Shape(c.dims), 1, Values::kPositive)}},
               {IsSmall(type) ? 1.0 : 64.0});
    }
  }
  for (const ElementType type : SharedTypes("BiasAdd")) {
    for (const int64_t channels : {1, 3, 64, 257}) {
      const Tensor x = Numbers(type, Shape({2, 3, 5, channels}), 1);
      both.Add("BiasAdd", {{x}, {Numbers(type, Shape({channels}), 2)}});
      both.Add("BiasAdd", {{x, Operand::kView}, {Numbers(type, Shape({3}), 2)}}, {},
               [](NodeSpec& node) { node.Attr("data_format", "NCHW"); });
      if (type == kInt32) continue;
      both.Add("BiasAddGrad", {{Numbers(type, Shape({2, 3, 5, channels}), 1, Values::kPositive)}},
               {IsSmall(type) ? 1.0 : 64.0});
    }
  }
  both.Compare();
}

TEST_F(Reductions, RunningSumsAndProducts) {
  for (const char* op : {"Cumsum", "Cumprod"}) {
    AgainstCpu both;
    for (const ElementType type : SharedTypes(op)) {
      if (IsSmall(type)) continue;  // The CPU rounds every partial sum.
      const bool sum = std::string(op) == "Cumsum";
      for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
               {1}, {31}, {sum ? 10'000 : 200}, {3, 70, 5}, {70, 3}, {2, 0, 3}}) {
        for (int32_t axis = 0; axis < static_cast<int32_t>(dims.size()); ++axis) {
          for (const bool exclusive : {false, true}) {
            for (const bool reverse : {false, true}) {
              both.Add(op,
                       {{Numbers(type, Shape(dims), 1,
                                 type == kInt64 ? Values::kAny : Values::kPositive)},
                        HostInt(axis)},
                       {300}, [=](NodeSpec& node) {
                         node.Attr("exclusive", exclusive).Attr("reverse", reverse);
                       });
            }
          }
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Reductions, RunningLogarithms) {
  AgainstCpu both;
  for (const ElementType type : SharedTypes("CumulativeLogsumexp")) {
    for (const std::vector<int64_t>& dims :
         std::vector<std::vector<int64_t>>{{1}, {31}, {10'000}, {3, 70, 5}, {70, 3}, {2, 0, 3}}) {
      // The CPU rounds every partial result.
      if (IsSmall(type) && Shape(dims).num_elements() > 31) continue;
      for (int32_t axis = 0; axis < static_cast<int32_t>(dims.size()); ++axis) {
        for (const bool exclusive : {false, true}) {
          for (const bool reverse : {false, true}) {
            const auto attrs = [=](NodeSpec& node) {
              node.Attr("exclusive", exclusive).Attr("reverse", reverse);
            };
            for (const Values values : {Values::kAny, Values::kModerate}) {
              both.Add("CumulativeLogsumexp",
                       {{Numbers(type, Shape(dims), 1, values)}, HostInt(axis)},
                       {300, type == kHalf       ? 0.1
                             : type == kBfloat16 ? 0.5
                                                 : 1e-5},
                       attrs);
            }
          }
        }
      }
    }
  }
  both.Compare();
}

TEST_F(Reductions, SoftmaxesAndCrossEntropies) {
  AgainstCpu both;
  for (const ElementType type : SharedTypes("Softmax")) {
    const Within within{IsSmall(type) ? 2.0 : 16.0, type == kDouble ? 1e-14 : 1e-6};
    for (const int64_t rows : {1, 3, 70}) {
      for (const int64_t columns : {1, 2, 10, 33, 257, 1025}) {
        const Shape shape({rows, columns});
        const Tensor x = Numbers(type, shape, 1, Values::kModerate);
        const Tensor y = Numbers(type, shape, 2, Values::kPositive);
        for (const char* op : {"Softmax", "LogSoftmax"}) {
          both.Add(op, {{x}}, within);
          both.Add(op, {{x, Operand::kView}}, within);
          both.Add(op, {{x, Operand::kCopy}}, within);
        }
        Within entropy = within;
        entropy.ulps *= 4;
        entropy.absolute *= 100;
        both.Add("SoftmaxCrossEntropyWithLogits", {{x}, {y}}, entropy);
        for (const ElementType labels : {kInt32, kInt64}) {
          Tensor classes = *Tensor::Allocate(labels, Shape({rows}));
          for (int64_t i = 0; i < rows; ++i) {
            const int64_t label = i * 7 % columns;
            if (labels == kInt64) {
              classes.mutable_data<int64_t>()[i] = label;
            } else {
              classes.mutable_data<int32_t>()[i] = static_cast<int32_t>(label);
            }
          }
          both.Add("SparseSoftmaxCrossEntropyWithLogits", {{x, Operand::kCopy}, {classes}},
                   entropy);
        }
      }
    }
  }
  both.Compare();
}

TEST_F(Reductions, TheLargestOnes) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kFloat, kInt64, kUint8}) {
    for (const int64_t n : {1, 33, 300}) {
      for (const int32_t k : {0, 1, 5, 17, 40}) {
        // Many are sorted, which takes seconds here.
        if (k > n || (k > 17 && (n < 300 || type != kFloat))) continue;
        // Of floating-point numbers, no NaNs: nobody promises where they are.
        const Values values = IsFloating(type) ? Values::kModerate : Values::kAny;
        both.Add("TopKV2", {{Numbers(type, Shape({n}), 1, values)}, HostInt(k)});
        both.Add("TopKV2", {{Numbers(type, Shape({3, n}), 2, values), Operand::kView}, HostInt(k)});
      }
    }
  }
  both.Compare();
  for (const ElementType targets : {kInt32, kInt64}) {
    for (const int64_t columns : {1, 10, 1000}) {
      const Tensor predictions = Numbers(kFloat, Shape({50, columns}), 1, Values::kModerate);
      Tensor classes = *Tensor::Allocate(targets, Shape({50}));
      for (int64_t i = 0; i < 50; ++i) {
        const int64_t one = i * 13 % (columns + 3) - 1;  // Some are none.
        if (targets == kInt64) {
          classes.mutable_data<int64_t>()[i] = one;
        } else {
          classes.mutable_data<int32_t>()[i] = static_cast<int32_t>(one);
        }
      }
      for (const int32_t k : {0, 1, 3, 100}) {
        both.Add("InTopK", {{predictions}, {classes}}, {},
                 [k](NodeSpec& node) { node.Attr("k", k); });
        both.Add("InTopKV2", {{predictions},
                              {classes},
                              OnHost(targets == kInt64 ? Tensor::Scalar<int64_t>(k)
                                                       : Tensor::Scalar<int32_t>(k))});
      }
    }
  }
  both.Compare();
  for (const ElementType type : {kBool, kFloat, kInt64, kComplex128}) {
    for (const std::vector<int64_t>& dims :
         std::vector<std::vector<int64_t>>{{1}, {0}, {3000}, {3, 70, 5}}) {
      both.Add("Where", {{Numbers(type, Shape(dims), 1, Values::kModerate)}});
      both.Add("Where", {{Numbers(type, Shape(dims), 1), Operand::kView}});
    }
  }
  both.Compare();
}

}  // namespace
}  // namespace troupe::testing
