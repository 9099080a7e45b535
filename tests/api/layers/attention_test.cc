// Attention against its definition in TensorFlow's ops, for the same weights.
#include "api/layers/attention.h"

#include <gmock/gmock.h>

#include "api/gradients.h"
#include "api/layers/beam_search.h"
#include "api/layers/decoder.h"
#include "tests/api/layers/recorded.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AttentionTest : public RecordedTest {
 protected:
  std::shared_ptr<const AttentionMechanism> Mechanism(const Scope& scope, bool luong,
                                                      const Output& memory,
                                                      const AttentionOptions& options) {
    if (luong) return std::make_shared<LuongAttention>(scope, 4, memory, options);
    return std::make_shared<BahdanauAttention>(scope, 6, memory, options);
  }
  std::vector<std::string> VariableNames() {
    std::vector<std::string> names;
    for (const ModelVariable& v : ModelVariable::Trainable(*s_.graph())) names.push_back(v.name());
    return names;
  }

  const RnnCellPtr cell_ = std::make_shared<BasicRnnCell>(4);
  const Tensor lengths_ = Tensor::Vector<int64_t>({5, 3});
};

TEST_F(AttentionTest, EqualsItsDefinitionWithGradients) {
  for (const bool luong : {false, true}) {
    for (const char* kind : {"", "/scaled", "/all"}) {
      for (const bool is_known : {true, false}) {
        const std::string name = StrCat("attention/", luong ? "luong" : "bahdanau", kind);
        SCOPED_TRACE(name);
        const bool all = std::string(kind) == "/all";
        s_ = Scope::NewRoot();
        const Output x = is_known ? Const(s_, WaveOf({2, 4, 3})) : Fed({-1, -1, 3});
        const Output memory = is_known ? Const(s_, WaveOf({2, 5, 3}, 0.9)) : Fed({-1, -1, 3});
        AttentionOptions options{.scale = std::string(kind) == "/scaled"};
        if (!all) options.memory_length = Const(s_, lengths_);
        const Scope given = Given();
        const AttentionCell cell(cell_, Mechanism(given, luong, memory, options),
                                 {.size = all ? 0 : 5});
        const Output y = DynamicRnn(given, cell, x).outputs;
        std::vector<Output> by = {x, memory};
        for (const ModelVariable& v : ModelVariable::Trainable(*s_.graph()))
          by.push_back(v.value());
        const Output sums[] = {WaveSum(y, {2, 4, all ? 3 : 5})};
        const OutputList gradients = Gradients(s_, sums, by);
        Start();
        FeedMap feeds;
        if (!is_known) feeds = {{x, WaveOf({2, 4, 3})}, {memory, WaveOf({2, 5, 3}, 0.9)}};
        ExpectRecorded(name, Value(y, feeds));
        for (size_t i = 0; i < by.size(); ++i) {
          ExpectRecorded(StrCat(name, "/gradient_", i), Value(gradients[i], feeds), 2e-5);
        }
      }
    }
  }
}

TEST_F(AttentionTest, VariablesHaveTensorFlowsNames) {
  const Output x = Fed({-1, -1, 3}), memory = Fed({-1, -1, 3});
  const AttentionCell cell(cell_, Mechanism(s_, false, memory, {.scale = true}), {.size = 5});
  DynamicRnn(s_, cell, x);
  const std::string wrapper = "rnn/attention_wrapper/";
  const std::string mechanism = wrapper + "bahdanau_attention/";
  EXPECT_THAT(VariableNames(),
              ElementsAre("memory_layer/kernel", wrapper + "basic_rnn_cell/kernel",
                          wrapper + "basic_rnn_cell/bias", mechanism + "query_layer/kernel",
                          mechanism + "attention_v", mechanism + "attention_g",
                          mechanism + "attention_b", wrapper + "attention_layer/kernel"));
}

TEST_F(AttentionTest, ProbabilitiesEndWithTheMemory) {
  const Output memory = Const(s_, WaveOf({2, 5, 3}));
  const auto mechanism = Mechanism(Given(), true, memory, {.memory_length = Const(s_, lengths_)});
  const Output p = mechanism->Align(s_, Const(s_, WaveOf({2, 4})));
  Start();
  const Tensor value = Value(p);
  ASSERT_EQ(value.shape(), Shape({2, 5}));
  for (size_t row = 0; row < 2; ++row) {
    const auto of_row = value.unchecked_values<float>().subspan(5 * row, 5);
    float sum = 0;
    for (const float x : of_row) sum += x;
    EXPECT_NEAR(sum, 1, 1e-6);
    for (size_t t = 0; t < 5; ++t) EXPECT_EQ(of_row[t] > 0, row == 0 || t < 3) << row << " " << t;
  }
}

TEST_F(AttentionTest, ABeamOfOneIsGreedyDecoding) {
  const Tensor memory = WaveOf({2, 5, 3}, 0.9);
  const auto embed = [](const Scope& s, const Output& tokens) {
    return ops::GatherV2(s, WaveOf({7, 3}), tokens, 0);
  };
  const auto project = [](const Scope& s, const Output& h) {
    return ops::Mul(s, ops::MatMul(s, h, CosineOf({4, 7})), 6.0);
  };
  const Output starts = Const(s_, Tensor::Vector<int32_t>({1, 4}));
  const Scope given = VariableScope(Given(), "shared", {.reuse = Reuse::kAuto});
  const auto cell = std::make_shared<AttentionCell>(
      cell_, Mechanism(given, true, Const(s_, memory), {.memory_length = Const(s_, lengths_)}),
      AttentionCellOptions{.size = 5, .output_attention = false});
  const std::vector<Output> state = cell->InitialState(s_, {Const(s_, WaveOf({2, 4}, 0.9))});
  const DecodeResult greedy =
      DynamicDecode(given, BasicDecoder(cell, GreedySampler(embed, starts, 2), state, project),
                    {.maximum_iterations = 6});
  const BeamSearchResult beam = BeamSearch(
      given,
      BeamSearchDecoder(cell, embed, starts, 2, state, {.beam_width = 1, .output_layer = project}),
      {.maximum_iterations = 6});
  Start();
  const Tensor samples = Value(greedy.outputs[1]), tokens = Value(beam.tokens);
  const Tensor lengths = Value(greedy.lengths);
  ASSERT_EQ(samples.num_elements(), tokens.num_elements());
  const int64_t time = samples.dim(1);
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t t = 0; t < lengths.unchecked_values<int32_t>()[static_cast<size_t>(row)]; ++t) {
      const auto i = static_cast<size_t>(row * time + t);
      EXPECT_EQ(samples.unchecked_values<int32_t>()[i], tokens.unchecked_values<int32_t>()[i]);
    }
  }
  EXPECT_EQ(VariableNames().size(), 4u);  // Shared.
}

TEST_F(AttentionTest, RefusesWhatDoesNotFit) {
  LuongAttention(s_, 4, Fed({-1, 3}));
  EXPECT_THAT(std::string(s_.status().message()), HasSubstr("must have 3 axes"));
  s_ = Scope::NewRoot();
  const AttentionCell cell(cell_, Mechanism(s_, true, Fed({-1, -1, 3}), {}), {});
  cell.Call(s_, Fed({-1, 3}), {Fed({-1, 4})});
  EXPECT_THAT(std::string(s_.status().message()), HasSubstr("has 2 states, and is given 1"));
}

}  // namespace
}  // namespace troupe
