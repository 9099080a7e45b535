// Recurrent cells and batch normalization of cards against the CPU's.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Recurrent : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// Numbers up to 1, or, if they are gates, between 0 and 1.
Tensor Small(ElementType type, std::vector<int64_t> dims, uint64_t seed, bool gates = false) {
  Tensor tensor = Numbers(type, Shape(dims), seed, gates ? Values::kPositive : Values::kModerate);
  SwitchPlain(type, [&]<typename T>() {
    if constexpr (kIsRealFloat<T>) {
      for (T& value : tensor.mutable_values<T>()) value = T(static_cast<float>(value) / 16);
    }
  });
  return tensor;
}

/// Products of half are rounded on cards.
Within WithinFor(ElementType type) { return type == kHalf ? Within{16, 0.02} : Within{64, 2e-5}; }

struct Sizes {
  int64_t steps, length, batch, inputs, cells;
};
constexpr Sizes kSizes[] = {{1, 1, 1, 1, 1}, {4, 4, 3, 5, 7}, {4, 2, 3, 5, 7},
                            {5, 5, 2, 0, 3}, {3, 0, 2, 3, 4}, {0, 0, 2, 3, 4},
                            {3, 3, 0, 3, 4}, {3, 3, 2, 3, 0}, {17, 15, 9, 11, 33}};

/// x, cs_prev, h_prev, w, wci, wcf, wco, b; of all steps, or of one.
std::vector<Operand> CellInputs(ElementType type, const Sizes& s, bool has_steps) {
  const std::vector<int64_t> x = {s.steps, s.batch, s.inputs};
  return {{Small(type, has_steps ? x : std::vector<int64_t>{s.batch, s.inputs}, 1)},
          {Small(type, {s.batch, s.cells}, 2)},
          {Small(type, {s.batch, s.cells}, 3)},
          {Small(type, {s.inputs + s.cells, 4 * s.cells}, 4)},
          {Small(type, {s.cells}, 5)},
          {Small(type, {s.cells}, 6)},
          {Small(type, {s.cells}, 7)},
          {Small(type, {4 * s.cells}, 8)}};
}

TEST_F(Recurrent, LstmForward) {
  for (const ElementType type : {kFloat, kHalf}) {
    AgainstCpu both;
    for (const Sizes& s : kSizes) {
      for (const bool peephole : {false, true}) {
        for (const char* op : {"LSTMBlockCell", "BlockLSTM", "BlockLSTMV2"}) {
          const bool has_steps = std::string(op) != "LSTMBlockCell";
          std::vector<Operand> inputs = CellInputs(type, s, has_steps);
          if (has_steps) inputs.insert(inputs.begin(), OnHost(Tensor::Scalar<int64_t>(s.length)));
          both.Add(op, inputs, WithinFor(type), [&](NodeSpec& node) {
            node.Attr("use_peephole", peephole).Attr("cell_clip", peephole ? 0.2f : -1.0f);
            if (std::string(op) != "BlockLSTMV2") node.Attr("forget_bias", 0.5f);
          });
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Recurrent, LstmGradients) {
  for (const ElementType type : {kFloat, kHalf}) {
    AgainstCpu both;
    for (const Sizes& s : kSizes) {
      for (const bool peephole : {false, true}) {
        for (const char* op : {"LSTMBlockCellGrad", "BlockLSTMGrad", "BlockLSTMGradV2"}) {
          const bool has_steps = std::string(op) != "LSTMBlockCellGrad";
          std::vector<Operand> inputs = CellInputs(type, s, has_steps);
          if (has_steps) inputs.insert(inputs.begin(), OnHost(Tensor::Scalar<int64_t>(s.length)));
          // i, cs, f, o, ci, co, (h,) cs_grad, h_grad
          for (uint64_t i = 0; i < (has_steps ? 9 : 8); ++i) {
            std::vector<int64_t> dims = {s.batch, s.cells};
            if (has_steps) dims.insert(dims.begin(), s.steps);
            inputs.emplace_back(Small(type, dims, 20 + i, i < 6));
          }
          both.Add(op, inputs, WithinFor(type),
                   [&](NodeSpec& node) { node.Attr("use_peephole", peephole); });
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Recurrent, Gru) {
  AgainstCpu both;
  for (const Sizes& s : kSizes) {
    std::vector<Operand> inputs = {{Small(kFloat, {s.batch, s.inputs}, 1)},
                                   {Small(kFloat, {s.batch, s.cells}, 2)},
                                   {Small(kFloat, {s.inputs + s.cells, 2 * s.cells}, 3)},
                                   {Small(kFloat, {s.inputs + s.cells, s.cells}, 4)},
                                   {Small(kFloat, {2 * s.cells}, 5)},
                                   {Small(kFloat, {s.cells}, 6)}};
    both.Add("GRUBlockCell", inputs, WithinFor(kFloat));
    for (uint64_t i = 0; i < 4; ++i) {
      inputs.emplace_back(Small(kFloat, {s.batch, s.cells}, 10 + i, i < 2));
    }
    both.Add("GRUBlockCellGrad", inputs, WithinFor(kFloat));
  }
  both.Compare();
}

TEST_F(Recurrent, RefusesShapesAndLengths) {
  std::vector<Operand> inputs = CellInputs(kFloat, {3, 3, 2, 3, 4}, true);
  inputs.insert(inputs.begin(), OnHost(Tensor::Scalar<int64_t>(4)));
  const auto attrs = [](NodeSpec& node) { node.Attr("use_peephole", false); };
  EXPECT_TRUE(absl::IsInvalidArgument(AgainstCpu::StatusOf("BlockLSTM", inputs, attrs)));
}

TEST_F(Recurrent, BatchNormOfOldVersions) {
  AgainstCpu both;
  for (const ElementType type : {kFloat, kHalf, kBfloat16}) {
    const double ulps = type == kFloat ? 64 : 2;
    const std::vector<Operand> vectors = {{Small(kFloat, {6}, 1)},
                                          {Small(kFloat, {6}, 2)},
                                          {Small(kFloat, {6}, 3)},
                                          {Small(kFloat, {6}, 4, /*gates=*/true)}};
    const Tensor x = Numbers(type, Shape({2, 3, 5, 6}), 5, Values::kModerate);
    const Tensor dy = Numbers(type, Shape({2, 3, 5, 6}), 6, Values::kModerate);
    const auto attrs = [](NodeSpec& node) { node.Attr("is_training", false); };
    both.Add("FusedBatchNormV2", {{x}, vectors[0], vectors[1], vectors[2], vectors[3]},
             {ulps, 1e-4}, attrs);
    both.Add("FusedBatchNormGradV2", {{dy}, {x}, vectors[0], vectors[2], vectors[3]}, {ulps, 1e-2},
             attrs);
  }
  both.Compare();
}

TEST_F(Recurrent, GlobalNormalization) {
  AgainstCpu both(/*version=*/8);
  for (const ElementType type : {kFloat, kHalf}) {
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2, 3, 5, 6},
                                             {1, 1, 1, 1},
                                             {3, 7, 5, 8},
                                             {40, 3, 3, 33},
                                             {2, 0, 3, 4},
                                             {2, 3, 3, 0}}) {
      for (const bool scale : {false, true}) {
        const auto attrs = [&](NodeSpec& node) {
          node.Attr("variance_epsilon", 0.01f).Attr("scale_after_normalization", scale);
        };
        for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
          const std::vector<int64_t> channels = {dims[3]};
          const Operand t{Numbers(type, Shape(dims), 1, Values::kModerate), as};
          const Operand dy{Numbers(type, Shape(dims), 2, Values::kModerate), as};
          const Operand mean{Small(type, channels, 3)}, beta{Small(type, channels, 4)};
          const Operand variance{Small(type, channels, 5, true)}, gamma{Small(type, channels, 6)};
          const Within within = type == kFloat ? Within{64, 2e-3} : Within{4, 0.05};
          both.Add("BatchNormWithGlobalNormalization", {t, mean, variance, beta, gamma}, within,
                   attrs);
          both.Add("BatchNormWithGlobalNormalizationGrad", {t, mean, variance, gamma, dy}, within,
                   attrs);
        }
      }
    }
  }
  both.Compare();
}

}  // namespace
}  // namespace troupe::testing
