// Recurrent cells and connectionist temporal classification against loops in double precision.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The inputs of an LSTM of [steps, batch, inputs] and `cells` cells.
struct Lstm {
  int64_t steps = 4, batch = 3, inputs = 2, cells = 5;
  ElementType type = ElementType::kFloat;
  bool use_peephole = true, is_v2 = false;
  double forget_bias = 0.5, clip = 0.7;

  Tensor x = RandomTensor(type, Shape({steps, batch, inputs}), -1, 1, 1);
  Tensor cs = RandomTensor(type, Shape({batch, cells}), -1, 1, 2);
  Tensor h = RandomTensor(type, Shape({batch, cells}), -1, 1, 3);
  Tensor w = RandomTensor(type, Shape({inputs + cells, 4 * cells}), -1, 1, 4);
  Tensor wci = RandomTensor(type, Shape({cells}), -1, 1, 5);
  Tensor wcf = RandomTensor(type, Shape({cells}), -1, 1, 6);
  Tensor wco = RandomTensor(type, Shape({cells}), -1, 1, 7);
  Tensor b = RandomTensor(type, Shape({4 * cells}), -1, 1, 8);

  void AddInputs(OpTest* op) const {
    for (const Tensor& t : {cs, h, w, wci, wcf, wco, b}) op->Input(t);
  }
  // Outputs i, cs, f, o, ci, co, h of all steps, 0 from step `length` on.
  std::vector<std::vector<double>> Run(int64_t length) const {
    std::vector<std::vector<double>> out(7, std::vector<double>(steps * batch * cells));
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t n = 0; n < batch; ++n) {
        const auto last = [&](const Tensor& first, int state, int64_t c) {
          return t == 0 ? At(first, n * cells + c) : out[state][((t - 1) * batch + n) * cells + c];
        };
        for (int64_t c = 0; c < cells; ++c) {
          const auto gate = [&](int64_t number) {
            const int64_t column = number * cells + c;
            double sum = At(b, column);
            for (int64_t k = 0; k < inputs; ++k) {
              sum += At(x, (t * batch + n) * inputs + k) * At(w, k * 4 * cells + column);
            }
            for (int64_t k = 0; k < cells; ++k) {
              sum += last(h, 6, k) * At(w, (inputs + k) * 4 * cells + column);
            }
            return sum;
          };
          const double cs_prev = last(cs, 1, c), peephole = use_peephole ? 1 : 0;
          const double i = Sigmoid(gate(0) + peephole * cs_prev * At(wci, c));
          const double ci = std::tanh(gate(is_v2 ? 2 : 1));
          const double f = Sigmoid(gate(is_v2 ? 1 : 2) + (is_v2 ? 0 : forget_bias) +
                                   peephole * cs_prev * At(wcf, c));
          double state = ci * i + cs_prev * f;
          if (clip > 0) state = std::clamp(state, -clip, clip);
          const double o = Sigmoid(gate(3) + peephole * state * At(wco, c));
          const double values[] = {i, state, f, o, ci, std::tanh(state), o * std::tanh(state)};
          for (int k = 0; k < 7; ++k) out[k][(t * batch + n) * cells + c] = values[k];
        }
      }
    }
    return out;
  }
};

TEST(SequenceTest, BlockLstm) {
  for (const bool is_v2 : {false, true}) {
    for (const bool use_peephole : {false, true}) {
      for (const ElementType type : {ElementType::kFloat, ElementType::kHalf}) {
        const Lstm lstm{.type = type, .use_peephole = use_peephole, .is_v2 = is_v2};
        const auto want = lstm.Run(3);
        OpTest op(is_v2 ? "BlockLSTMV2" : "BlockLSTM");
        op.Attr("use_peephole", use_peephole).Attr("cell_clip", lstm.clip);
        if (!is_v2) op.Attr("forget_bias", lstm.forget_bias);
        op.Input(Tensor::Scalar<int64_t>(3)).Input(lstm.x);
        lstm.AddInputs(&op);
        ASSERT_EQ(op.Run(), absl::OkStatus());
        const double tolerance = type == ElementType::kHalf ? 0.02 : 1e-5;
        for (int i = 0; i < 7; ++i) {
          ExpectNear(op.output(i),
                     MakeTensor(type, Shape({lstm.steps, lstm.batch, lstm.cells}), want[i]),
                     tolerance, tolerance);
        }
      }
    }
  }
}

TEST(SequenceTest, LstmBlockCellIsOneStep) {
  const Lstm lstm{.steps = 1};
  const auto want = lstm.Run(1);
  OpTest op("LSTMBlockCell");
  op.Attr("use_peephole", true).Attr("cell_clip", lstm.clip).Attr("forget_bias", lstm.forget_bias);
  op.Input(RandomTensor(lstm.type, Shape({lstm.batch, lstm.inputs}), -1, 1, 1));
  lstm.AddInputs(&op);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  for (int i = 0; i < 7; ++i) {
    ExpectNear(op.output(i), MakeTensor(lstm.type, Shape({lstm.batch, lstm.cells}), want[i]));
  }
}

TEST(SequenceTest, RefusesCellsThatDoNotFit) {
  const Lstm lstm;
  for (const int64_t length : {-1, 5}) {
    OpTest op("BlockLSTM");
    op.Input(Tensor::Scalar<int64_t>(length)).Input(lstm.x);
    lstm.AddInputs(&op);
    EXPECT_EQ(op.Run().code(), kInvalid);
  }
  Lstm bias;
  bias.b = RandomTensor(bias.type, Shape({3 * bias.cells}), -1, 1);
  Lstm weights;
  weights.w = RandomTensor(bias.type, Shape({weights.cells, 4 * weights.cells}), -1, 1);
  Lstm state;
  state.cs = RandomTensor(bias.type, Shape({state.batch + 1, state.cells}), -1, 1);
  for (const Lstm& bad : {bias, weights, state}) {
    OpTest op("BlockLSTM");
    op.Input(Tensor::Scalar<int64_t>(2)).Input(bad.x);
    bad.AddInputs(&op);
    EXPECT_EQ(op.Run().code(), kInvalid);
  }
}

TEST(SequenceTest, GruBlockCell) {
  const int64_t batch = 2, inputs = 3, cells = 4, rows = inputs + cells;
  const ElementType type = ElementType::kFloat;
  const Tensor x = RandomTensor(type, Shape({batch, inputs}), -1, 1, 1);
  const Tensor h = RandomTensor(type, Shape({batch, cells}), -1, 1, 2);
  const Tensor w_ru = RandomTensor(type, Shape({rows, 2 * cells}), -1, 1, 3);
  const Tensor w_c = RandomTensor(type, Shape({rows, cells}), -1, 1, 4);
  const Tensor b_ru = RandomTensor(type, Shape({2 * cells}), -1, 1, 5);
  const Tensor b_c = RandomTensor(type, Shape({cells}), -1, 1, 6);
  std::vector<double> want[4];
  for (int64_t n = 0; n < batch; ++n) {
    const auto product = [&](const Tensor& w, int64_t column, auto state) {
      double sum = 0;
      for (int64_t k = 0; k < rows; ++k) {
        sum +=
            (k < inputs ? At(x, n * inputs + k) : state(k - inputs)) * At(w, k * w.dim(1) + column);
      }
      return sum;
    };
    const auto last = [&](int64_t c) { return At(h, n * cells + c); };
    for (int64_t c = 0; c < 2 * cells; ++c) {
      want[c / cells].push_back(Sigmoid(product(w_ru, c, last) + At(b_ru, c)));
    }
    for (int64_t c = 0; c < cells; ++c) {
      want[2].push_back(std::tanh(At(b_c, c) + product(w_c, c, [&](int64_t k) {
                                    return last(k) * want[0][n * cells + k];
                                  })));
      const double u = want[1][n * cells + c];
      want[3].push_back((1 - u) * want[2].back() + u * last(c));
    }
  }
  OpTest op("GRUBlockCell");
  op.Input(x).Input(h).Input(w_ru).Input(w_c).Input(b_ru).Input(b_c);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  for (int i = 0; i < 4; ++i) {
    ExpectNear(op.output(i), MakeTensor(type, Shape({batch, cells}), want[i]));
  }
  OpTest bad("GRUBlockCell");
  bad.Input(x).Input(h).Input(w_ru).Input(w_c).Input(b_c).Input(b_c);
  EXPECT_EQ(bad.Run().code(), kInvalid);
}

// What `path`, a class for each step, says: equal classes in a row once, blanks left out.
std::vector<int64_t> Spelled(const std::vector<int64_t>& path, int64_t blank) {
  std::vector<int64_t> labels;
  for (size_t t = 0; t < path.size(); ++t) {
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  }
  return labels;
}

// The probabilities of all sequences of labels, by going through all paths.
std::map<std::vector<int64_t>, double> AllSequences(const Tensor& logits, int64_t b) {
  const int64_t time = logits.dim(0), batch = logits.dim(1), classes = logits.dim(2);
  std::map<std::vector<int64_t>, double> all;
  std::vector<int64_t> path(time, 0);
  for (int64_t i = 0; i < std::pow(classes, time); ++i) {
    double p = 1;
    for (int64_t t = 0, left = i; t < time; ++t, left /= classes) {
      path[t] = left % classes;
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) {
        sum += std::exp(At(logits, (t * batch + b) * classes + c));
      }
      p *= std::exp(At(logits, (t * batch + b) * classes + path[t])) / sum;
    }
    all[Spelled(path, classes - 1)] += p;
  }
  return all;
}

TEST(SequenceTest, CtcLossAndBeamSearchAgreeWithAllPaths) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kDouble}) {
    const Tensor logits = RandomTensor(type, Shape({5, 2, 3}), -2, 2, 1);
    const Tensor lengths = Tensor::Vector<int32_t>({5, 5});
    const std::vector<int64_t> labels[2] = {{0, 1, 1}, {1}};
    OpTest loss("CTCLoss");
    loss.Input(logits);
    loss.Input(Tensor::FromValues<int64_t>({0, 0, 0, 1, 0, 2, 1, 0}, Shape({4, 2})).value());
    loss.Input(Tensor::Vector<int32_t>({0, 1, 1, 1})).Input(lengths);
    ASSERT_EQ(loss.Run(), absl::OkStatus());
    OpTest beam("CTCBeamSearchDecoder");
    beam.Attr("beam_width", 100).Attr("top_paths", 2).Attr("merge_repeated", false);
    ASSERT_EQ(beam.Input(logits).Input(lengths).Run(), absl::OkStatus());
    for (int64_t b = 0; b < 2; ++b) {
      const auto all = AllSequences(logits, b);
      EXPECT_NEAR(At(loss.output(0), b), -std::log(all.at(labels[b])), 1e-5);
      const auto best = std::max_element(
          all.begin(), all.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
      EXPECT_NEAR(At(beam.output(6), 2 * b), std::log(best->second), 1e-5);
      std::vector<int64_t> decoded;
      for (int64_t i = 0; i < beam.output(0).dim(0); ++i) {
        if (At(beam.output(0), 2 * i) != static_cast<double>(b)) continue;
        decoded.push_back(static_cast<int64_t>(At(beam.output(2), i)));
      }
      EXPECT_EQ(decoded, best->first);
    }
  }
}

TEST(SequenceTest, CtcGreedyDecoder) {
  // Classes 1, 1, 2 (the blank one), 0.
  const Tensor logits =
      MakeTensor(ElementType::kFloat, Shape({4, 1, 3}), {0, 2, 1, 0, 3, 1, 0, 1, 5, 4, 1, 1});
  for (const bool merge : {false, true}) {
    OpTest op("CTCGreedyDecoder");
    op.Attr("merge_repeated", merge);
    op.Input(logits).Input(Tensor::Vector<int32_t>({4}));
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ExpectEqual(op.output(1),
                merge ? Tensor::Vector<int64_t>({1, 0}) : Tensor::Vector<int64_t>({1, 1, 0}));
    ExpectEqual(op.output(2), Tensor::Vector<int64_t>({1, merge ? 2 : 3}));
    ExpectEqual(op.output(3), MakeTensor(ElementType::kFloat, Shape({1, 1}), {-14}));
  }
  OpTest blank("CTCGreedyDecoder");
  blank.Attr("blank_index", 3).Input(logits).Input(Tensor::Vector<int32_t>({4}));
  EXPECT_EQ(blank.Run().code(), kInvalid);
  OpTest longer("CTCGreedyDecoder");
  longer.Input(logits).Input(Tensor::Vector<int32_t>({5}));
  EXPECT_EQ(longer.Run().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SequenceTest, CtcRefusesBadLabels) {
  const Tensor logits = RandomTensor(ElementType::kFloat, Shape({3, 1, 3}), -1, 1);
  const auto code = [&](const std::vector<int64_t>& indices, const std::vector<int32_t>& labels,
                        int32_t length) {
    OpTest op("CTCLoss");
    const int64_t count = static_cast<int64_t>(labels.size());
    op.Input(logits).Input(Tensor::FromValues<int64_t>(indices, Shape({count, 2})).value());
    op.Input(Tensor::Vector<int32_t>(labels)).Input(Tensor::Vector<int32_t>({length}));
    return op.Run().code();
  };
  EXPECT_EQ(code({0, 0}, {1}, 3), absl::StatusCode::kOk);
  EXPECT_EQ(code({1, 0}, {1}, 3), kInvalid);
  EXPECT_EQ(code({-1, 0}, {1}, 3), kInvalid);
  EXPECT_EQ(code({0, 1, 0, 0}, {1, 1}, 3), kInvalid);
  EXPECT_EQ(code({0, 0, 0, 0}, {1, 1}, 3), kInvalid);
  EXPECT_EQ(code({0, 0}, {-1}, 3), kInvalid);
  EXPECT_EQ(code({0, 0, 0, 1}, {2, 1}, 3), kInvalid);
  EXPECT_EQ(code({0, 0, 0, 1}, {0, 1}, 1), kInvalid);
  EXPECT_EQ(code({0, 0}, {1}, 4), kInvalid);
  EXPECT_EQ(code({0, 0}, {1}, -1), kInvalid);
  EXPECT_EQ(code({}, {}, 3), kInvalid);
  OpTest paths("CTCBeamSearchDecoder");
  paths.Attr("beam_width", 2).Attr("top_paths", 3);
  EXPECT_EQ(paths.Input(logits).Input(Tensor::Vector<int32_t>({3})).Run().code(), kInvalid);
}

TEST(SequenceTest, BatchNormWithGlobalNormalization) {
  const Tensor t = MakeTensor(ElementType::kDouble, Shape({1, 1, 1, 2}), {3, 5});
  const auto vector = [](double a, double b) {
    return MakeTensor(ElementType::kDouble, Shape({2}), {a, b});
  };
  OpTest op("BatchNormWithGlobalNormalization");
  op.Attr("variance_epsilon", 0.0f).Attr("scale_after_normalization", true);
  op.Input(t).Input(vector(1, 1)).Input(vector(4, 1)).Input(vector(10, 20)).Input(vector(2, 3));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectNear(op.output(0), MakeTensor(ElementType::kDouble, t.shape(), {12, 32}));
  OpTest bad("BatchNormWithGlobalNormalization");
  bad.Attr("variance_epsilon", 0.0f).Attr("scale_after_normalization", true);
  bad.Input(t).Input(vector(1, 1)).Input(vector(4, 1)).Input(vector(10, 20));
  bad.Input(MakeTensor(ElementType::kDouble, Shape({3}), {1, 2, 3}));
  EXPECT_EQ(bad.Run().code(), kInvalid);
}

}  // namespace
}  // namespace troupe::testing
