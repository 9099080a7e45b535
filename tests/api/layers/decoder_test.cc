// Decoders against NumPy's by definition, for the same weights.
#include "api/layers/decoder.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>

#include "api/gradients.h"
#include "api/layers/beam_search.h"
#include "api/layers/losses.h"
#include "api/training/optimizers.h"
#include "tests/api/layers/recorded.h"

namespace troupe {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kEnd = 2;

Output Embed(const Scope& s, const Output& tokens) {
  return ops::GatherV2(s, WaveOf({7, 3}), tokens, 0);
}

/// To logits of 7 tokens, of which the end token's is larger by `bias`.
layers::Activation Project(float bias = 0) {
  return [bias](const Scope& s, const Output& h) {
    const Output logits = ops::Mul(s, ops::MatMul(s, h, CosineOf({4, 7})), 6.0);
    return ops::Add(s, logits, ops::OneHot(s, kEnd, 7, bias, 0.0f));
  };
}

class DecoderTest : public RecordedTest {
 protected:
  const Tensor starts_ = Tensor::Vector<int32_t>({1, 4});
  const Tensor states_ = WaveOf({2, 4}, 0.9);
  const Output fed_starts_ = Fed({-1}, ElementType::kInt32), fed_states_ = Fed({-1, 4});
  const FeedMap feeds_ = {{fed_starts_, starts_}, {fed_states_, states_}};
  const RnnCellPtr cell_ = std::make_shared<BasicRnnCell>(4);

  BeamSearchResult Search(const Output& starts, const Output& states, int64_t width, double penalty,
                          float bias, const DecodeOptions& options) {
    const BeamSearchDecoder decoder(
        cell_, Embed, starts, kEnd, {TileBatch(s_, states, width)},
        {.beam_width = width, .length_penalty = penalty, .output_layer = Project(bias)});
    return BeamSearch(Given(), decoder, options);
  }
};

TEST_F(DecoderTest, BeamSearchEqualsItsDefinition) {
  struct Row {
    std::string name;
    int64_t width;
    double penalty;
    float bias;
    std::optional<Input> limit;
  };
  for (const Row& row : {Row{"beam", 4, 0, 0, 8}, Row{"beam/penalty", 4, 1.5, 0, 8},
                         Row{"beam/short", 8, .5, 0, 2}, Row{"beam/ends", 3, .5, 4, {}}}) {
    for (const bool is_known : {true, false}) {
      const BeamSearchResult r = Search(is_known ? Const(s_, starts_) : fed_starts_,
                                        is_known ? Const(s_, states_) : fed_states_, row.width,
                                        row.penalty, row.bias, {.maximum_iterations = row.limit});
      Start();
      const FeedMap feeds = is_known ? FeedMap() : feeds_;
      ExpectRecorded(row.name + "/tokens", Value(r.tokens, feeds));
      ExpectRecorded(row.name + "/scores", Value(r.scores, feeds));
      ExpectRecorded(row.name + "/log_p", Value(r.log_probabilities, feeds));
      ExpectRecorded(row.name + "/lengths", Value(r.lengths, feeds));
    }
  }
}

TEST_F(DecoderTest, ABeamOfAllIsAnExhaustiveSearch) {
  // As many beams as there are sequences of three tokens: the best one is found.
  const BeamSearchResult all =
      Search(fed_starts_, fed_states_, 343, 0, 0, {.maximum_iterations = 3, .time_major = true});
  const BeamSearchResult one =
      Search(fed_starts_, fed_states_, 1, 0, 0, {.maximum_iterations = 3, .time_major = true});
  Start();
  const Tensor of_all = Value(all.log_probabilities, feeds_);
  const Tensor of_one = Value(one.log_probabilities, feeds_);
  EXPECT_EQ(Value(all.tokens, feeds_).shape(), Shape({3, 2, 343}));
  for (size_t row = 0; row < 2; ++row) {
    const auto p = of_all.unchecked_values<float>().subspan(343 * row, 343);
    EXPECT_TRUE(std::is_sorted(p.begin(), p.end(), std::greater<float>()));
    EXPECT_GE(p[0], of_one.unchecked_values<float>()[row]);
    // Sequences that end, and those that go on, are all there are.
    double sum = 0;
    for (const float x : p) sum += std::exp(static_cast<double>(x));
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
}

TEST_F(DecoderTest, GatherTreeFollowsParents) {
  // As TensorFlow Addons has it in its tests, time first.
  const auto tree = [&](std::vector<int32_t> tokens, std::vector<int32_t> parents, int32_t length,
                        int32_t end) {
    const Shape shape = {static_cast<int64_t>(tokens.size() / 3), 1, 3};
    return GatherTree(s_, Const(s_, Tensor::FromValues<int32_t>(tokens, shape).value()),
                      Const(s_, Tensor::FromValues<int32_t>(parents, shape).value()),
                      Const(s_, Tensor::Vector<int32_t>({length})), end);
  };
  const Output found =
      tree({1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1, -1}, {0, 0, 0, 0, 1, 1, 2, 1, 2, -1, -1, -1}, 3, 10);
  const Output ended = tree({1, 10, 3, 4, 5, 10, 7, 8, 9}, {0, 0, 0, 1, 0, 1, 2, 1, 2}, 3, 10);
  Start();
  const auto ints = [&](const Output& x) {
    const Tensor value = Value(x);
    const auto span = value.unchecked_values<int32_t>();
    return std::vector<int32_t>(span.begin(), span.end());
  };
  EXPECT_THAT(ints(found), ElementsAre(2, 2, 2, 6, 5, 6, 7, 8, 9, 10, 10, 10));
  EXPECT_THAT(ints(ended), ElementsAre(10, 1, 10, 10, 5, 10, 10, 8, 10));
}

TEST_F(DecoderTest, GreedyEqualsItsDefinition) {
  for (const bool is_known : {true, false}) {
    const BasicDecoder decoder(
        cell_, GreedySampler(Embed, is_known ? Const(s_, starts_) : fed_starts_, kEnd),
        {is_known ? Const(s_, states_) : fed_states_}, Project());
    const DecodeResult r =
        DynamicDecode(Given(), decoder, {.maximum_iterations = 5, .impute_finished = true});
    Start();
    const FeedMap feeds = is_known ? FeedMap() : feeds_;
    ExpectRecorded("greedy/outputs", Value(r.outputs[0], feeds));
    ExpectRecorded("greedy/samples", Value(r.outputs[1], feeds));
  }
}

TEST_F(DecoderTest, TrainingReadsItsInputs) {
  // The same as the cell along the inputs, for as many steps as there are.
  const Output x = Fed({-1, -1, 3}), lengths = Const(s_, Tensor::Vector<int64_t>({4, 2}));
  const BasicDecoder decoder(cell_, TrainingSampler(x, lengths), {fed_states_});
  const DecodeResult r = DynamicDecode(Given(), decoder, {.impute_finished = true});
  const RnnResult dynamic =
      DynamicRnn(VariableScope(s_, "given", {.reuse = Reuse::kYes}), *cell_, x,
                 {.sequence_length = lengths, .initial_state = {fed_states_}, .name = "decoder"});
  const Output sums[] = {ReduceSum(s_, ops::Square(s_, r.outputs[0]))};
  const Output same[] = {ReduceSum(s_, ops::Square(s_, dynamic.outputs))};
  const Output by[] = {ModelVariable::Trainable(*s_.graph())[0].value(), x, fed_states_};
  const OutputList gradients = Gradients(s_, sums, by), expected = Gradients(s_, same, by);
  Start();
  FeedMap feeds = feeds_;
  feeds.emplace_back(x, WaveOf({2, 5, 3}));
  const std::vector<float> decoded = Numbers(r.outputs[0], feeds);
  std::vector<float> along = Numbers(dynamic.outputs, feeds);
  // The decoder makes no fifth step.
  along.erase(along.begin() + 36, along.end());
  along.erase(along.begin() + 16, along.begin() + 20);
  EXPECT_EQ(decoded, along);
  EXPECT_EQ(Numbers(r.state[0], feeds), Numbers(dynamic.state[0], feeds));
  const Tensor steps = Value(r.lengths, feeds);
  EXPECT_THAT(steps.unchecked_values<int32_t>(), ElementsAre(4, 2));
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<float> a = Numbers(gradients[i], feeds), b = Numbers(expected[i], feeds);
    ASSERT_EQ(a.size(), b.size());
    for (size_t j = 0; j < a.size(); ++j) EXPECT_NEAR(a[j], b[j], 1e-5) << i;
  }
}

TEST_F(DecoderTest, LearnsASequence) {
  s_.SetGraphSeed(5);
  const Tensor words = Tensor::FromValues<int32_t>({3, 6, 0, kEnd}, {1, 4}).value();
  const Tensor read = Tensor::FromValues<int32_t>({1, 3, 6, 0}, {1, 4}).value();
  const auto cell = std::make_shared<LstmCell>(8);
  const auto project = [](const Scope& s, const Output& h) {
    const ModelVariable w = GetVariable(s, "projection", {8, 7});
    return ops::MatMul(s, h, w.value());
  };
  const std::vector<Output> state = cell->ZeroState(s_, 1, ElementType::kFloat);
  const BasicDecoder training(
      cell, TrainingSampler(Embed(s_, Const(s_, read)), Const(s_, Tensor::Vector<int32_t>({4}))),
      state, project);
  const DecodeResult taught = DynamicDecode(s_, training);
  const Output logits = ops::EnsureShape(s_, taught.outputs[0], PartialShape({1, -1, 7}));
  const Output loss = losses::SparseSoftmaxCrossEntropy(s_, Const(s_, words), logits);
  Node* train = AdamOptimizer(0.05f).Minimize(s_, loss);
  const Output start = Const(s_, Tensor::Vector<int32_t>({1}));
  const DecodeResult greedy =
      DynamicDecode(s_, BasicDecoder(cell, GreedySampler(Embed, start, kEnd), state, project),
                    {.maximum_iterations = 10, .reuse = Reuse::kYes});
  const DecodeResult random = DynamicDecode(
      s_, BasicDecoder(cell, RandomSampler(Embed, start, kEnd, 0.1, 3), state, project),
      {.maximum_iterations = 10, .reuse = Reuse::kYes});
  std::vector<Output> tiled;
  for (const Output& x : state) tiled.push_back(TileBatch(s_, x, 3));
  const BeamSearchResult beams =
      BeamSearch(s_,
                 BeamSearchDecoder(cell, Embed, start, kEnd, tiled,
                                   {.beam_width = 3, .output_layer = project}),
                 {.maximum_iterations = 10, .time_major = true, .reuse = Reuse::kYes});
  Start();
  for (int i = 0; i < 150; ++i) ASSERT_EQ(session_->RunTargets({train}), absl::OkStatus());
  EXPECT_LT(Number(loss), 0.05);
  for (const Output& samples : {greedy.outputs[1], random.outputs[1]}) {
    const Tensor made = Value(samples);
    EXPECT_THAT(made.unchecked_values<int32_t>(), ElementsAre(3, 6, 0, kEnd));
  }
  const Tensor lengths = Value(greedy.lengths), tokens = Value(beams.tokens);
  EXPECT_THAT(lengths.unchecked_values<int32_t>(), ElementsAre(4));
  const auto first = tokens.unchecked_values<int32_t>();
  EXPECT_THAT((std::vector<int32_t>{first[0], first[3], first[6], first[9]}),
              ElementsAre(3, 6, 0, kEnd));
}

TEST_F(DecoderTest, ScoresOfBeamsHaveGradients) {
  // Of the best beam's log P, against differences.
  const Output scale = Fed(PartialShape({}));
  const auto project = [&](const Scope& s, const Output& h) {
    return ops::Mul(s, ops::MatMul(s, h, CosineOf({4, 7})), scale);
  };
  const BeamSearchDecoder decoder(cell_, Embed, Const(s_, starts_), kEnd,
                                  {TileBatch(s_, Const(s_, states_), 3)},
                                  {.beam_width = 3, .output_layer = project});
  const BeamSearchResult r = BeamSearch(Given(), decoder, {.maximum_iterations = 4});
  const Output sums[] = {ReduceSum(s_, r.log_probabilities)};
  const Output by[] = {scale};
  const Output gradient = Gradients(s_, sums, by)[0];
  Start();
  const auto at = [&](float x) { return FeedMap{{scale, Tensor::Scalar(x)}}; };
  const float difference = Number(sums[0], at(6.01f)) - Number(sums[0], at(5.99f));
  EXPECT_NEAR(Number(gradient, at(6)), difference / .02, 2e-2);
}

TEST_F(DecoderTest, NoStepsAreNoError) {
  const BasicDecoder decoder(cell_, GreedySampler(Embed, fed_starts_, kEnd), {fed_states_},
                             Project());
  const DecodeResult r = DynamicDecode(Given(), decoder, {.maximum_iterations = 0});
  Start();
  const Tensor lengths = Value(r.lengths, feeds_);
  EXPECT_THAT(lengths.unchecked_values<int32_t>(), Each(0));
  EXPECT_EQ(Value(r.state[0], feeds_).shape(), Shape({2, 4}));
}

TEST_F(DecoderTest, WhatCannotBeIsRefused) {
  const auto refused = [&](const std::string& says, const std::function<void()>& add) {
    s_ = Scope::NewRoot();
    add();
    EXPECT_EQ(s_.status().code(), absl::StatusCode::kInvalidArgument) << s_.status();
    EXPECT_THAT(std::string(s_.status().message()), HasSubstr(says));
  };
  const auto starts = [&] { return Const(s_, starts_); };
  const auto states = [&] { return Const(s_, states_); };
  refused("0 beams", [&] {
    BeamSearch(s_, BeamSearchDecoder(cell_, Embed, starts(), kEnd, {states()}, {.beam_width = 0}));
  });
  refused("as they are", [&] { Search(starts(), states(), 2, 0, 0, {.impute_finished = true}); });
  refused("[batch * beam, size]",
          [&] { BeamSearch(s_, BeamSearchDecoder(cell_, Embed, starts(), kEnd, {starts()})); });
  refused("temperature", [&] {
    DynamicDecode(s_, BasicDecoder(cell_, RandomSampler(Embed, starts(), kEnd, 0.0), {states()}));
  });
  refused("TileBatch", [&] { TileBatch(s_, states(), 0); });
}

}  // namespace
}  // namespace troupe
