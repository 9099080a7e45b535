// Random numbers of cards: the CPU's for the same seeds, run for run.
#include "api/troupe.h"
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr int64_t kLengths[] = {0, 1, 2, 3, 4, 5, 257, 10'003};
/// A run begins where the one before has reserved its last number.
constexpr int kRuns = 3;

class RandomNumbers : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

AgainstCpu::Attrs Seeded(const char* attr, ElementType type, int64_t seed) {
  return [=](NodeSpec& node) {
    node.Attr(attr, type).Attr("seed", seed).Attr("seed2", seed * 77 + 1);
  };
}

TEST_F(RandomNumbers, OfFloatingPoint) {
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    AgainstCpu both;
    for (const ElementType type : FloatTypes()) {
      // Logarithms and sines of doubles are the libraries' own.
      const Within within{type == kDouble && std::string(op) != "RandomUniform" ? 4.0 : 0.0};
      for (const int64_t seed : {1, 87654321}) {
        for (const int64_t n : kLengths) {
          both.Add(op, {OnHost(Tensor::Vector<int64_t>({n}))}, within, Seeded("dtype", type, seed));
        }
      }
    }
    both.Compare(kRuns);
  }
}

template <typename T>
void AddRanges(AgainstCpu* both) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  const std::pair<T, T> ranges[] = {{0, 10}, {-5, -4}, {kLeast, kMost}, {kMost - 3, kMost}};
  for (const auto& [low, high] : ranges) {
    for (const int64_t n : kLengths) {
      both->Add("RandomUniformInt",
                {OnHost(Tensor::Vector<int64_t>({n})), OnHost(Tensor::Scalar<T>(low)),
                 OnHost(Tensor::Scalar<T>(high))},
                {}, Seeded("Tout", kElementType<T>, 5));
    }
  }
}

TEST_F(RandomNumbers, Integers) {
  AgainstCpu both;
  AddRanges<int32_t>(&both);
  AddRanges<int64_t>(&both);
  both.Compare(kRuns);
  const absl::Status status = AgainstCpu::StatusOf(
      "RandomUniformInt", {HostInts({5}), HostInt(3), HostInt(3)}, Seeded("Tout", kInt32, 5));
  EXPECT_NE(status.message().find("minval must be less than maxval"), std::string::npos) << status;
}

TEST_F(RandomNumbers, Classes) {
  AgainstCpu both;
  for (const ElementType type : FloatTypes()) {
    for (const ElementType to : {kInt32, kInt64}) {
      for (const auto& [rows, classes] : {std::pair{1, 1}, {3, 7}, {5, 300}, {2, 5000}}) {
        for (const int32_t samples : {0, 1, 7, 500}) {
          // Some classes are infinite or none at all: they have no share.
          both.Add("Multinomial",
                   {{Numbers(type, Shape({rows, classes}), 3,
                             classes == 300 ? Values::kAny : Values::kModerate)},
                    HostInt(samples)},
                   {}, Seeded("output_dtype", to, 9));
        }
      }
    }
  }
  both.Compare(kRuns);
}

/// The integers of `bits`, as uint64s.
Tensor Words(std::initializer_list<uint64_t> bits) { return Tensor::Vector<uint64_t>(bits); }

struct Position {
  const char* suffix;
  std::vector<Operand> inputs;
};
/// By a seed, and by a key and a counter that the host has, or that the card has computed.
std::vector<Position> Positions(const char* of_seed = "", const char* of_key = "V2") {
  const Tensor key = Words({0x123456789abcdef0}), counter = Words({5, ~uint64_t{0}});
  const Tensor last = Words({~uint64_t{0} - 2, 7, 9});  // Its first half overflows.
  return {
      {of_seed, {OnHost(Tensor::Vector<int64_t>({3, -5}))}},
      {of_seed, {HostInts({-1, 7})}},
      {of_key, {{key}, {counter}, HostInt(1)}},
      {of_key, {{key, Operand::kCopy}, {last, Operand::kCopy}, HostInt(3)}},
  };
}

std::vector<Operand> Join(const Operand& first, std::vector<Operand> rest,
                          std::initializer_list<Operand> last = {}) {
  rest.insert(rest.begin(), first);
  rest.insert(rest.end(), last);
  return rest;
}

TEST_F(RandomNumbers, WithoutState) {
  AgainstCpu both;
  for (const std::string op : {"StatelessRandomUniform", "StatelessRandomNormal",
                               "StatelessTruncatedNormal", "StatelessRandomUniformFullInt"}) {
    const bool integers = op.ends_with("Int");
    for (const ElementType type :
         integers ? std::vector{kInt32, kInt64, kUint32, kUint64} : FloatTypes()) {
      const Within within{type == kDouble && !op.ends_with("Uniform") ? 4.0 : 0.0};
      for (const Position& position : Positions()) {
        for (const int64_t n : kLengths) {
          both.Add(op + position.suffix,
                   Join(OnHost(Tensor::Vector<int64_t>({n})), position.inputs), within,
                   [=](NodeSpec& node) { node.Attr("dtype", type); });
        }
      }
    }
  }
  both.Compare();
}

template <typename T>
void AddStatelessRanges(AgainstCpu* both) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  for (const auto& [low, high] : {std::pair<T, T>{0, 10}, {-5, -4}, {kLeast, kMost}}) {
    for (const Position& position : Positions()) {
      for (const int32_t n : {0, 1, 1003}) {
        both->Add(StrCat("StatelessRandomUniformInt", position.suffix),
                  Join(HostInts({n}), position.inputs,
                       {OnHost(Tensor::Scalar<T>(low)), OnHost(Tensor::Scalar<T>(high))}),
                  {}, [](NodeSpec& node) { node.Attr("dtype", kElementType<T>); });
      }
    }
  }
}

TEST_F(RandomNumbers, IntegersWithoutState) {
  AgainstCpu both;
  AddStatelessRanges<int32_t>(&both);
  AddStatelessRanges<int64_t>(&both);
  both.Compare();
}

TEST_F(RandomNumbers, ClassesWithoutState) {
  AgainstCpu both;
  for (const ElementType type : FloatTypes()) {
    for (const ElementType to : {kInt32, kInt64}) {
      for (const int32_t samples : {0, 1, 501}) {
        both.Add("StatelessMultinomial",
                 {{Numbers(type, Shape({3, 70}), 3, Values::kModerate)},
                  HostInt(samples),
                  HostInts({5, samples})},
                 {}, [=](NodeSpec& node) { node.Attr("output_dtype", to); });
      }
    }
  }
  both.Compare();
}

TEST_F(RandomNumbers, OfGammaDistributions) {
  AgainstCpu both;
  for (const ElementType type : {kHalf, kFloat, kDouble}) {
    for (const Position& position : Positions("V2", "V3")) {
      const Tensor alpha = Numbers(type, Shape({7}), 4, Values::kPositive);
      const Tensor one = Numbers(type, Shape({1, 1}), 5, Values::kPositive);
      const Within within{type == kDouble ? 64.0 : 1.0};
      const auto attrs = [=](NodeSpec& node) { node.Attr("dtype", type); };
      const std::string op = StrCat("StatelessRandomGamma", position.suffix);
      both.Add(op, Join(HostInts({301, 7}), position.inputs, {{alpha}}), within, attrs);
      both.Add(op, Join(HostInts({2, 5, 1, 1}), position.inputs, {{one}}), within, attrs);
      both.Add(op, Join(HostInts({0, 7}), position.inputs, {{alpha}}), within, attrs);
    }
  }
  // An alpha of 1 has a way of its own.
  both.Add("StatelessRandomGammaV2",
           {HostInts({100, 2}), HostInts({1, 2}), {Tensor::Vector<double>({1, 0.01})}}, {64.0});
  both.Compare();
}

TEST_F(RandomNumbers, InputsThatAreBad) {
  const Operand shape = HostInts({5}), key = Words({1}), counter = Words({2, 3});
  const std::pair<std::vector<Operand>, const char*> cases[] = {
      {{shape, key, counter, HostInt(2)}, "alg must be 1"},
      {{shape, key, Words({1}), HostInt(1)}, "counter must be a vector of at least 2"},
  };
  for (const auto& [inputs, said] : cases) {
    const absl::Status status = AgainstCpu::StatusOf("StatelessRandomUniformV2", inputs);
    EXPECT_NE(status.message().find(said), std::string::npos) << status;
  }
  const absl::Status gamma = AgainstCpu::StatusOf(
      "StatelessRandomGammaV2",
      {shape, HostInts({1, 2}), {Numbers(kFloat, Shape({3}), 1, Values::kPositive)}});
  EXPECT_NE(gamma.message().find("the shape must end with"), std::string::npos) << gamma;
}

TEST_F(RandomNumbers, KeysOfSeeds) {
  AgainstCpu both;
  both.Add("StatelessRandomGetKeyCounter", {HostInts({3, 4})});
  both.Add("StatelessRandomGetKeyCounterAlg", {OnHost(Tensor::Vector<int64_t>({-3, 4}))});
  both.Add("StatelessRandomGetAlg", {});
  both.Compare();
}

/// Draws `runs` times on a device, and gives what was drawn and the state after that.
std::vector<Tensor> DrawWithState(const std::string& op, const std::vector<Tensor>& inputs,
                                  ElementType type, const char* device, int runs) {
  const Scope root = Scope::NewRoot(), scope = root.WithDevice(device);
  const Tensor start = Tensor::Vector<int64_t>({-700, 3, 99, 1234});
  const Output state = ops::VarHandleOp(scope, ElementType::kInt64, PartialShape(start.shape()));
  Node* const init = ops::AssignVariableOp(scope, state, start);
  NodeSpec spec(op, "draw");
  spec.Input(state).Device(device).Attr("dtype", type);
  for (const Tensor& input : inputs)
    spec.Input(ops::Const(root.WithDevice("/device:CPU:0"), input));
  const absl::StatusOr<Node*> draw = root.graph()->AddNode(spec);
  EXPECT_TRUE(draw.ok()) << draw.status();
  const Output value = ops::ReadVariableOp(scope, state, ElementType::kInt64);
  SessionOptions options;
  options.devices = {{"GPU", {.count = 1}}};
  const auto session = Session::Create(root.graph(), options);
  EXPECT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->RunTargets({init}).ok());
  std::vector<Tensor> results;
  for (int i = 0; i < runs; ++i) {
    for (const Output& fetch : {Output(*draw), value}) {
      const auto values = (*session)->Run({fetch});
      EXPECT_TRUE(values.ok()) << values.status();
      if (values.ok()) results.push_back(values->front());
    }
  }
  return results;
}

TEST_F(RandomNumbers, WithState) {
  struct Case {
    const char* op;
    std::vector<ElementType> types;
    bool range = false;
  };
  const Case cases[] = {
      {"StatefulUniform", FloatTypes()},
      {"StatefulStandardNormalV2", FloatTypes()},
      {"StatefulTruncatedNormal", FloatTypes()},
      {"StatefulUniformInt", {kInt64}, true},
      {"StatefulUniformFullInt", {kInt32, kInt64, kUint32, kUint64}},
  };
  for (const Case& c : cases) {
    EXPECT_FALSE(KernelTypes(c.op, "GPU", "dtype").empty()) << c.op;
    for (const ElementType type : c.types) {
      const Within within{type == kDouble && !c.range ? 4.0 : 0.0};
      for (const int64_t n : {0, 1, 1003}) {
        std::vector<Tensor> inputs = {Tensor::Scalar<int64_t>(1), Tensor::Vector<int64_t>({n})};
        if (c.range) {
          inputs.push_back(Tensor::Scalar<int64_t>(-8));
          inputs.push_back(Tensor::Scalar<int64_t>(1000));
        }
        const auto want = DrawWithState(c.op, inputs, type, "/device:CPU:0", kRuns);
        const auto got = DrawWithState(c.op, inputs, type, "/device:GPU:0", kRuns);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_TRUE(SameValues(got[i], want[i], within)) << c.op << " " << i;
        }
      }
    }
  }
}

TEST_F(RandomNumbers, Rows) {
  AgainstCpu both;
  for (const ElementType type : {kFloat, kInt64, kComplex128}) {
    for (const int64_t rows : {1, 2, 5, 1000}) {
      both.Add("RandomShuffle", {{Numbers(type, Shape({rows, 3}), 1)}}, {},
               [](NodeSpec& node) { node.Attr("seed", 4).Attr("seed2", 5); });
    }
  }
  both.Compare(kRuns);
}

}  // namespace
}  // namespace troupe::testing
