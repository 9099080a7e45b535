// A decoder-only transformer that learns a text character by character, and writes more of it.
//
//     build/release/bin/small_gpt --steps 3000
//
// Each position looks at itself and those before it (causal attention, Vaswani et al. 2017); layers
// are normalized before they are used, as in GPT-2 (Radford et al. 2019). It learns by AdamW
// (Loshchilov and Hutter 2019), at a rate that warms up and then falls by a cosine. How well it
// does is told as perplexity, as in lstm_language_model.cc, which reads the same text.
//
// 3,000 steps take 115 s of processor time and reach a test perplexity of 2.77 per character. (The
// LSTM has 4.1. Both are helped by that licenses quote one another.)

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "examples/shared/text_corpus.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using corpus::OrDie;

constexpr int64_t kContext = 128;  // Positions that the model sees.
constexpr int64_t kChannels = 128, kHeads = 4, kBlocks = 3;
constexpr double kDropout = 0.1;
constexpr float kLearningRate = 2e-3f, kWeightDecay = 0.1f, kClipNorm = 1.0f;
constexpr float kWarmUpSteps = 100;

struct Options : corpus::Options {
  std::string prompt = "The ";
  int64_t length = 400, samples = 2, top_k = 20;
  float temperature = 0.8f;
};

/// The nodes that training, testing and sampling use.
struct Model {
  Output inputs, targets;     ///< int32 [batch, kContext], fed: characters, and what follows them.
  Output loss;                ///< Mean of -log(probability of what does follow), in training.
  Output losses;              ///< The same of each position, [batch * kContext], in testing.
  Output last;                ///< int32, fed: the position after which a character is drawn.
  Output temperature, top_k;  ///< float and int32, fed.
  Output drawn;               ///< int32 [batch, 1].
  Node* train = nullptr;
};

/// Logits [batch, kContext, vocabulary] of what follows each position. Later calls share the
/// variables of the first.
Output Logits(const Scope& root, const Output& characters, int64_t vocabulary, bool training) {
  const Scope s = VariableScope(root, "gpt", {.reuse = Reuse::kAuto});
  const Initializer normal = RandomNormalInitializer(0.0, 0.1);
  const auto dropout = [&](const Output& y) {
    return layers::DropoutLayer(s, y, kDropout, training);
  };
  const auto normalize = [](const Scope& s, const Output& x, const char* name) {
    return layers::LayerNormalization(s, x, {.name = name, .epsilon = 1e-5});
  };
  const ModelVariable positions =
      GetVariable(s, "positions", {kContext, kChannels}, {.initializer = normal});
  Output x = layers::Embedding(s, characters, vocabulary, kChannels,
                               {.name = "characters", .initializer = normal});
  x = dropout(ops::Add(s, x, positions.value()));
  for (int i = 0; i < kBlocks; ++i) {
    const Scope block = VariableScope(s, "block_" + std::to_string(i));
    const Output seen = normalize(block, x, "before_attention");
    const Output heard = layers::MultiHeadAttention(block, seen, seen, kHeads,
                                                    {.name = "attention", .causal = true});
    x = ops::Add(block, x, dropout(heard));
    const Output wide = layers::Dense(block, normalize(block, x, "before_mlp"), 4 * kChannels,
                                      {.name = "mlp_in", .activation = layers::Gelu});
    x = ops::Add(block, x, dropout(layers::Dense(block, wide, kChannels, {.name = "mlp_out"})));
  }
  return layers::Dense(s, normalize(s, x, "last"), vocabulary, {.name = "logits"});
}

/// Adam's step; then matrices shrink by the rate times the decay.
Node* AdamW(const Scope& s, const Output& loss, int64_t steps) {
  const ModelVariable step = GlobalStep(s);
  const Output count = ops::Cast(s, step.value(), ElementType::kFloat);
  const Output warm_up =
      ops::Minimum(s, ops::RealDiv(s, ops::Add(s, count, 1.0f), kWarmUpSteps), 1.0f);
  const Output rate =
      ops::Mul(s, warm_up, CosineDecay(s, kLearningRate, count, std::max<int64_t>(steps, 1), 0.1f));
  AdamOptimizer optimizer(rate, 0.9f, 0.99f);
  Node* const adam = optimizer.ApplyGradients(
      s, ClipByGlobalNorm(s, optimizer.ComputeGradients(s, loss), kClipNorm), step);
  const Scope after = s.WithControlDependencies({Output(adam)});
  std::vector<Node*> decays;
  for (const ModelVariable& variable : ModelVariable::Trainable(*s.graph())) {
    if (variable.shape().rank() != 2) continue;
    decays.push_back(variable.AssignSub(
        after, ops::Mul(after, variable.Read(after), ops::Mul(after, rate, kWeightDecay))));
  }
  return ops::NoOp(s.WithControlDependencies(decays));
}

Model Build(const Scope& s, int64_t vocabulary, int64_t steps) {
  Model m;
  const auto feed = [&](const char* name, ElementType type, const PartialShape& shape) {
    return ops::Placeholder(s.WithOpName(name), type, {.shape = shape});
  };
  m.inputs = feed("inputs", ElementType::kInt32, PartialShape({-1, kContext}));
  m.targets = feed("targets", ElementType::kInt32, PartialShape({-1, kContext}));
  const Output targets = ops::Reshape(s, m.targets, {-1});
  const auto losses = [&](const Output& logits) {
    const Output rows = ops::Reshape(s, logits, {-1, static_cast<int32_t>(vocabulary)});
    return ops::SparseSoftmaxCrossEntropyWithLogits(s, rows, targets).loss;
  };
  m.loss = ReduceMean(s, losses(Logits(s, m.inputs, vocabulary, /*training=*/true)));
  m.train = AdamW(s, m.loss, steps);

  const Output logits = Logits(s, m.inputs, vocabulary, /*training=*/false);
  m.losses = losses(logits);
  // Only the likeliest characters are in the draw; a low temperature favors the likelier of them.
  m.last = feed("last", ElementType::kInt32, PartialShape({}));
  m.temperature = feed("temperature", ElementType::kFloat, PartialShape({}));
  m.top_k = feed("top_k", ElementType::kInt32, PartialShape({}));
  const auto top =
      ops::TopKV2(s, ops::RealDiv(s, ops::GatherV2(s, logits, m.last, 1), m.temperature), m.top_k);
  const OpSeed seed = OpSeed::For(s, std::nullopt);
  const Output which = ops::Multinomial(s, top.values, 1, {.seed = seed.seed, .seed2 = seed.seed2});
  m.drawn = ops::GatherV2(s, top.indices, which, 1, {.batch_dims = 1});
  return m;
}

/// Rows of kContext characters, from each of `begins`: [begins, kContext].
Tensor Windows(const std::vector<int32_t>& text, absl::Span<const int64_t> begins) {
  Tensor windows =
      Tensor::Uninitialized(ElementType::kInt32, {static_cast<int64_t>(begins.size()), kContext});
  int32_t* out = windows.mutable_data<int32_t>();
  for (const int64_t begin : begins) out = std::copy_n(text.begin() + begin, kContext, out);
  return windows;
}

/// exp of the mean loss over a text. Windows overlap by half, so that each character, but those of
/// the first half, is guessed from at least half a context.
double Perplexity(Session* session, const Model& m, const std::vector<int32_t>& text) {
  double sum = 0;
  int64_t count = 0;
  const auto end = static_cast<int64_t>(text.size()) - kContext;
  for (int64_t begin = 0; begin < end;) {
    std::vector<int64_t> begins, nexts;
    for (; begin < end && begins.size() < 16; begin += kContext / 2) {
      begins.push_back(begin);
      nexts.push_back(begin + 1);
    }
    const Tensor losses = OrDie(session->Run(
        {{m.inputs, Windows(text, begins)}, {m.targets, Windows(text, nexts)}}, {m.losses}))[0];
    const float* loss = *losses.data<float>();
    for (const int64_t window : begins) {
      for (int64_t t = window == 0 ? 0 : kContext / 2; t < kContext; ++t, ++count) {
        sum += static_cast<double>(loss[t]);
      }
      loss += kContext;
    }
  }
  return std::exp(sum / static_cast<double>(count));
}

/// Texts that begin with the prompt and go on as the model draws, one character at a time.
std::vector<std::string> Sample(Session* session, const Model& m, const Options& options,
                                const corpus::Vocabulary<char>& characters) {
  std::vector<std::vector<int32_t>> texts(options.samples);
  for (const char c : options.prompt) {
    const auto id = characters.ids.find(c);
    if (id == characters.ids.end()) {
      corpus::Die(absl::InvalidArgumentError("the text has no '" + std::string(1, c) +
                                             "', which the prompt has"));
    }
    for (std::vector<int32_t>& text : texts) text.push_back(id->second);
  }
  for (int64_t i = 0; i < options.length && !texts.empty(); ++i) {
    const int64_t seen = std::min(static_cast<int64_t>(options.prompt.size()) + i, kContext);
    std::vector<int32_t> rows;
    std::vector<int64_t> begins;
    for (const std::vector<int32_t>& text : texts) {
      begins.push_back(static_cast<int64_t>(rows.size()));
      rows.insert(rows.end(), text.end() - seen, text.end());
      rows.resize(begins.back() + kContext);  // Nobody looks at what is behind the last one.
    }
    const Tensor drawn = OrDie(session->Run(
        {{m.inputs, Windows(rows, begins)},
         {m.last, Tensor::Scalar(static_cast<int32_t>(seen - 1))},
         {m.temperature, Tensor::Scalar(options.temperature)},
         {m.top_k,
          Tensor::Scalar(static_cast<int32_t>(std::min(options.top_k, characters.size())))}},
        {m.drawn}))[0];
    for (int64_t n = 0; n < options.samples; ++n) {
      texts[n].push_back((*drawn.data<int32_t>())[n]);
    }
  }
  std::vector<std::string> result;
  for (const std::vector<int32_t>& text : texts) {
    std::string& out = result.emplace_back();
    for (const int32_t id : text) out += characters.entries[id];
  }
  return result;
}

Options ReadOptions(int argc, char** argv) {
  Options options;
  static_cast<corpus::Options&>(options) = corpus::ParseOptions(
      argc, argv, "A decoder-only transformer that learns a text character by character.",
      {.steps = 3000, .batch = 8}, [&](CommandLine& line) {
        AddValue(&line, "--prompt TEXT", &options.prompt, "What samples begin with")
            ->check([](const std::string& text) {
              return text.empty() ? std::string("must not be empty") : std::string();
            });
        AddValue(&line, "--samples N", &options.samples, "Texts that are written at the end")
            ->check(WholeNumber(0, 1000));
        AddValue(&line, "--length N", &options.length, "Characters of each")
            ->check(WholeNumber(0, 1'000'000));
        AddValue(&line, "--temperature T", &options.temperature,
                 "Below 1: the likelier characters become likelier still")
            ->check(Number(1e-3, 1e3));
        AddValue(&line, "--top-k K", &options.top_k, "Only the K likeliest characters are drawn")
            ->check(WholeNumber(1, 1'000'000));
      });
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = ReadOptions(argc, argv);

  // The last tenth of the text is kept for the test.
  const std::string text = corpus::ReadText(options.texts);
  const corpus::Vocabulary<char> characters(text);
  std::vector<int32_t> all;
  for (const char character : text) all.push_back(characters.ids.at(character));
  const std::vector<int32_t> training(all.begin(), all.end() - all.size() / 10);
  const std::vector<int32_t> test(all.end() - all.size() / 10, all.end());
  if (test.size() <= kContext) {
    corpus::Die(absl::InvalidArgumentError("the text is too short"));
  }

  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const Model m = Build(s, characters.size(), options.steps);
  Node* init = GlobalVariablesInitializer(s);
  OrDie(s.status());
  const auto session = OrDie(Session::Create(s.graph(), {.threads = options.threads}));
  OrDie(session->RunTargets({init}));
  std::printf("%zu characters, %lld different ones\n", text.size(),
              static_cast<long long>(characters.size()));

  const auto step = OrDie(session->MakeCallable({m.inputs, m.targets}, {m.loss}, {m.train}));
  std::mt19937_64 random(static_cast<uint64_t>(options.seed));
  std::uniform_int_distribution<int64_t> begin(
      0, static_cast<int64_t>(training.size()) - kContext - 1);
  std::chrono::duration<double, std::milli> taken{};
  double loss = 0;
  const int64_t report = std::max<int64_t>(1, options.steps / 10);
  for (int64_t i = 1; i <= options.steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<int64_t> begins(options.batch), nexts;
    for (int64_t& b : begins) nexts.push_back((b = begin(random)) + 1);
    Tensor result;
    OrDie(step({Windows(training, begins), Windows(training, nexts)}, absl::MakeSpan(&result, 1)));
    loss += static_cast<double>(*result.scalar<float>());
    taken += std::chrono::steady_clock::now() - start;
    if (i % report == 0) {
      std::printf("step %5lld  training perplexity %6.2f  test perplexity %6.2f  %6.1f ms/step\n",
                  static_cast<long long>(i), std::exp(loss / static_cast<double>(report)),
                  Perplexity(session.get(), m, test), taken.count() / static_cast<double>(report));
      std::fflush(stdout);
      loss = 0;
      taken = {};
    }
  }

  std::printf("test perplexity: %.2f\n", Perplexity(session.get(), m, test));
  for (const std::string& sample : Sample(session.get(), m, options, characters)) {
    std::printf("sample: %s\n", sample.c_str());
  }
  return 0;
}
