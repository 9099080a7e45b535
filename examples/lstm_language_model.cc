// A language model: after reading some text, which character comes next?
//
//     build/release/bin/lstm_language_model --steps 1500
//
// The model reads character by character. What it remembers is the state of an LSTM (Hochreiter and
// Schmidhuber 1997): two vectors, h and c. A loop in the graph goes over the characters of a piece
// of text; its gradient is another loop, which goes back. How well it does is told as perplexity:
// if that is 5, the model is as unsure of the next character as if it had to guess among 5.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "examples/shared/text_corpus.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial

constexpr int kUnits = 128;      // Size of h and c.
constexpr int kEmbedding = 32;   // Size of the vector that stands for a character.
constexpr int64_t kLength = 50;  // Characters that one step reads, and goes back in its gradient.

/// The nodes that training, testing and sampling use. Sizes are [time, batch, ...]; both may differ
/// from run to run.
struct Model {
  Output inputs, targets;  // int32 [time, batch], fed: characters, and those that follow them.
  Output h, c;             // float [batch, kUnits], fed: the state before the first character.
  Output last_h, last_c;   // The state after the last one.
  Output next;             // float [batch, vocabulary]: probabilities of what follows at the end.
  Output loss;             // Mean of -log(probability of the character that did follow).
  Node* train = nullptr;
};

Model Build(const Scope& s, int64_t vocabulary) {
  Model m;
  auto characters = [&](const char* name) {
    return ops::Placeholder(s.WithOpName(name), ElementType::kInt32,
                            {.shape = PartialShape({-1, -1})});
  };
  auto state = [&](const char* name) {
    return ops::Placeholder(s.WithOpName(name), ElementType::kFloat,
                            {.shape = PartialShape({-1, kUnits})});
  };
  m.inputs = characters("inputs");
  m.targets = characters("targets");
  m.h = state("h");
  m.c = state("c");

  // Each character is a row of a table, which is learned with the rest.
  const ModelVariable table(s, {vocabulary, kEmbedding}, RandomUniformInitializer(-0.1, 0.1),
                            "embedding");
  const Output vectors = EmbeddingLookup(s, table, m.inputs);  // [time, batch, kEmbedding]

  // One matrix computes all four parts of the LSTM's step from the character and h.
  const ModelVariable weights(s, {kEmbedding + kUnits, 4 * kUnits}, GlorotUniformInitializer(),
                              "lstm/weights");
  const ModelVariable biases(s, {4 * kUnits}, ZerosInitializer(), "lstm/biases");

  // The loop. A TensorArray takes the input apart, so that each iteration reads its own characters;
  // another one collects what each iteration gives.
  const Output length =
      ops::StridedSlice(s, ops::Shape(s, m.inputs), {0}, {1}, {1}, {.shrink_axis_mask = 1});
  const TensorArray in = TensorArray(s, length, ElementType::kFloat).Unstack(s, vectors);
  const TensorArray out(s, length, ElementType::kFloat);
  const std::vector<Output> end = WhileLoop(
      s, {0, m.h, m.c, out.flow()},
      [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], length); },
      [&](const Scope& s, absl::Span<const Output> v) {
        const Output time = v[0], h = v[1], c = v[2];
        const std::vector<Output> x_and_h = {in.Read(s, time), h};
        const Output all = ops::BiasAdd(
            s, ops::MatMul(s, ops::ConcatV2(s, x_and_h, 1), weights.value()), biases.value());
        const std::vector<Output> parts = ops::Split(s, 1, all, 4);
        const Output input = ops::Sigmoid(s, parts[0]), news = ops::Tanh(s, parts[1]);
        // Biased towards remembering, which is what an untrained LSTM should do.
        const Output keep = ops::Sigmoid(s, ops::Add(s, parts[2], 1.0f));
        const Output output = ops::Sigmoid(s, parts[3]);
        const Output new_c = ops::Add(s, ops::Mul(s, keep, c), ops::Mul(s, input, news));
        const Output new_h = ops::Mul(s, output, ops::Tanh(s, new_c));
        return std::vector<Output>{ops::Add(s, time, 1), new_h, new_c,
                                   out.WithFlow(v[3]).Write(s, time, new_h).flow()};
      },
      {.shape_invariants = {PartialShape({}), PartialShape({-1, kUnits}),
                            PartialShape({-1, kUnits}), PartialShape()}});
  if (!s.ok()) return m;
  m.last_h = end[1];
  m.last_c = end[2];
  const Output states = ops::Reshape(s, out.WithFlow(end[3]).Stack(s), {-1, kUnits});

  // From each h the next character.
  const ModelVariable softmax(s, {kUnits, vocabulary}, GlorotUniformInitializer(),
                              "softmax/weights");
  const ModelVariable softmax_bias(s, {vocabulary}, ZerosInitializer(), "softmax/biases");
  auto logits = [&](const Output& h) {
    return ops::BiasAdd(s, ops::MatMul(s, h, softmax.value()), softmax_bias.value());
  };
  const Output targets = ops::Reshape(s, m.targets, {-1});
  m.loss = ReduceMean(s, ops::SparseSoftmaxCrossEntropyWithLogits(s, logits(states), targets).loss);
  m.next = ops::Softmax(s, logits(m.last_h));

  // Gradients of long chains may explode: they are kept to a length of 5.
  const ModelVariable step = GlobalStep(s);
  AdamOptimizer optimizer(ExponentialDecay(s, 0.004f, step.value(), 1000, 0.5f));
  m.train = optimizer.ApplyGradients(
      s, ClipByGlobalNorm(s, optimizer.ComputeGradients(s, m.loss), 5.0f), step);
  return m;
}

Tensor Zeros(int64_t batch) {
  const std::vector<float> zeros(batch * kUnits, 0.0f);
  return Tensor::FromValues<float>(zeros, {batch, kUnits}).value();
}

/// Characters [begin, begin + length) of `batch` streams that lie `stride` apart: [length, batch].
Tensor Piece(const std::vector<int32_t>& text, int64_t begin, int64_t length, int64_t batch,
             int64_t stride) {
  Tensor piece = Tensor::Uninitialized(ElementType::kInt32, {length, batch});
  int32_t* out = piece.mutable_data<int32_t>();
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t b = 0; b < batch; ++b) *out++ = text[b * stride + begin + t];
  }
  return piece;
}

/// exp of the mean loss over a text, read from its beginning to its end.
double Perplexity(Session* session, const Model& m, const std::vector<int32_t>& text) {
  Tensor h = Zeros(1), c = Zeros(1);
  double sum = 0;
  const int64_t n = static_cast<int64_t>(text.size()) - 1;
  for (int64_t begin = 0; begin < n; begin += kLength) {
    const int64_t length = std::min(kLength, n - begin);
    const auto values =
        corpus::OrDie(session->Run({{m.inputs, Piece(text, begin, length, 1, 0)},
                                    {m.targets, Piece(text, begin + 1, length, 1, 0)},
                                    {m.h, h},
                                    {m.c, c}},
                                   {m.loss, m.last_h, m.last_c}));
    sum += static_cast<double>(values[0].scalar<float>().value()) * static_cast<double>(length);
    h = values[1];
    c = values[2];
  }
  return std::exp(sum / static_cast<double>(n));
}

/// Lets the model read `start`, then go on by itself: each character is drawn by the probabilities
/// that it gives, and read in turn.
std::string Sample(Session* session, const Model& m, const corpus::Vocabulary<char>& characters,
                   std::string text, int64_t length, int64_t seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  Tensor h = Zeros(1), c = Zeros(1);
  std::vector<int32_t> unread;
  for (const char character : text) unread.push_back(characters.ids.at(character));
  for (int64_t i = 0; i < length; ++i) {
    const Tensor piece = Piece(unread, 0, static_cast<int64_t>(unread.size()), 1, 0);
    const auto values = corpus::OrDie(
        session->Run({{m.inputs, piece}, {m.h, h}, {m.c, c}}, {m.next, m.last_h, m.last_c}));
    const auto probabilities = values[0].values<float>().value();
    std::discrete_distribution<int32_t> draw(probabilities.begin(), probabilities.end());
    unread = {draw(random)};
    text += characters.entries[unread[0]];
    h = values[1];
    c = values[2];
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const corpus::Options options = corpus::ParseOptions(
      argc, argv, "A language model of characters: an LSTM that learns a text.",
      {.steps = 1500, .batch = 32});

  // The last tenth of the text is kept for the test.
  const std::string text = corpus::ReadText(options.texts);
  const corpus::Vocabulary<char> characters(text);
  std::vector<int32_t> all;
  for (const char character : text) all.push_back(characters.ids.at(character));
  const std::vector<int32_t> training(all.begin(), all.end() - all.size() / 10);
  const std::vector<int32_t> test(all.end() - all.size() / 10, all.end());
  // Each row of a batch reads a stream of its own, from one step to the next.
  const int64_t stride = static_cast<int64_t>(training.size()) / options.batch;
  if (stride <= kLength || test.size() < 2) {
    corpus::Die(absl::InvalidArgumentError("the text is too short for such a batch"));
  }

  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const Model m = Build(s, characters.size());
  Node* init = GlobalVariablesInitializer(s);
  corpus::OrDie(s.status());
  SessionOptions session_options;
  session_options.threads = options.threads;
  auto session = corpus::OrDie(Session::Create(s.graph(), session_options));
  corpus::OrDie(session->RunTargets({init}));
  std::printf("%zu characters, %lld different ones\n", text.size(),
              static_cast<long long>(characters.size()));

  // The state is fetched from each step and fed to the next, so that it reaches as far back as the
  // text; gradients go back as far as the step.
  const auto step = corpus::OrDie(session->MakeCallable({m.inputs, m.targets, m.h, m.c},
                                                        {m.loss, m.last_h, m.last_c}, {m.train}));
  std::vector<Tensor> results = {Tensor(), Zeros(options.batch), Zeros(options.batch)};
  int64_t begin = 0;
  double loss = 0;
  const int64_t report = std::max<int64_t>(1, options.steps / 10);
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 1; i <= options.steps; ++i) {
    if (begin + kLength + 1 > stride) {
      begin = 0;
      results[1] = results[2] = Zeros(options.batch);
    }
    const std::vector<Tensor> feeds = {Piece(training, begin, kLength, options.batch, stride),
                                       Piece(training, begin + 1, kLength, options.batch, stride),
                                       results[1], results[2]};
    begin += kLength;
    corpus::OrDie(step(feeds, absl::MakeSpan(results)));
    loss += static_cast<double>(results[0].scalar<float>().value());
    if (i % report == 0) {
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("step %5lld  training perplexity %6.2f  test perplexity %6.2f  %5.1f steps/s\n",
                  static_cast<long long>(i), std::exp(loss / static_cast<double>(report)),
                  Perplexity(session.get(), m, test), static_cast<double>(i) / seconds);
      std::fflush(stdout);
      loss = 0;
    }
  }

  const std::string beginning = text.substr(0, 20);
  std::printf("test perplexity: %.2f\n", Perplexity(session.get(), m, test));
  std::printf("sample: %s\n",
              Sample(session.get(), m, characters, beginning, 400, options.seed).c_str());
  return 0;
}
