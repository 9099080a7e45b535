// Words as vectors: words that stand in like places get vectors that point in like directions.
//
//     build/release/bin/word2vec --steps 20000
//
// Skip-gram (Mikolov et al. 2013): from the vector of a word, guess the words around it. There are
// as many classes as words, so that the loss looks at a sample of them only; and a step changes
// only the rows of the words that it looked at: the gradients are sparse.

#include <cmath>
#include <cstdio>
#include <random>

#include "examples/shared/text_corpus.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial

constexpr int kSize = 64;     // Of a word's vector.
constexpr int kWindow = 4;    // Words to each side that count as around.
constexpr int kSampled = 32;  // Wrong words that a step looks at.
constexpr int kMinCount = 5;  // Rarer words are left out.

/// Gives pairs of a word and one of those around it, walking through the text.
class Pairs {
 public:
  Pairs(const std::vector<std::string>& words, const corpus::Vocabulary<std::string>& vocabulary,
        int64_t seed)
      : random_(static_cast<uint64_t>(seed)) {
    for (const std::string& word : words) {
      const auto it = vocabulary.ids.find(word);
      if (it != vocabulary.ids.end()) text_.push_back(it->second);
    }
    // Words like "the" say little about those around them: most of them are skipped.
    const double total = static_cast<double>(text_.size());
    for (const int64_t count : vocabulary.counts) {
      keep_.push_back(std::min(1.0, std::sqrt(1e-3 * total / static_cast<double>(count))));
    }
    at_ = text_.size();
  }

  /// `inputs` [n] and `labels` [n, 1].
  void Next(int64_t n, std::vector<int32_t>* inputs, std::vector<int64_t>* labels) {
    inputs->clear();
    labels->clear();
    while (static_cast<int64_t>(inputs->size()) < n) {
      if (++at_ >= kept_.size()) Restart();
      const int reach = std::uniform_int_distribution<int>(1, kWindow)(random_);
      for (int offset = -reach; offset <= reach; ++offset) {
        const int64_t other = static_cast<int64_t>(at_) + offset;
        if (offset == 0 || other < 0 || other >= static_cast<int64_t>(kept_.size())) continue;
        if (static_cast<int64_t>(inputs->size()) == n) break;
        inputs->push_back(kept_[at_]);
        labels->push_back(kept_[other]);
      }
    }
  }

 private:
  void Restart() {
    kept_.clear();
    std::uniform_real_distribution<double> chance(0, 1);
    for (const int32_t word : text_) {
      if (chance(random_) < keep_[word]) kept_.push_back(word);
    }
    at_ = 0;
  }

  std::vector<int32_t> text_, kept_;
  std::vector<double> keep_;
  size_t at_ = 0;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  const corpus::Options options = corpus::ParseOptions(
      argc, argv, "Embeddings of words, learned from text.", {.steps = 20000, .batch = 128});
  const std::vector<std::string> words = corpus::Words(corpus::ReadText(options.texts));
  const corpus::Vocabulary<std::string> vocabulary(words, kMinCount);
  if (vocabulary.size() < 2 * kSampled) {
    corpus::Die(absl::InvalidArgumentError("the text has too few different words"));
  }
  std::printf("%zu words, %lld different ones that occur %d times or more\n", words.size(),
              static_cast<long long>(vocabulary.size()), kMinCount);

  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const Output inputs =
      ops::Placeholder(s.WithOpName("inputs"), ElementType::kInt32, {.shape = PartialShape({-1})});
  const Output labels = ops::Placeholder(s.WithOpName("labels"), ElementType::kInt64,
                                         {.shape = PartialShape({-1, 1})});

  // A vector for each word, and another one for being guessed.
  const ModelVariable vectors(s, {vocabulary.size(), kSize}, RandomUniformInitializer(-0.5, 0.5),
                              "vectors");
  const ModelVariable weights(s, {vocabulary.size(), kSize},
                              TruncatedNormalInitializer(0, 1 / std::sqrt(kSize)), "weights");
  const ModelVariable biases(s, {vocabulary.size()}, ZerosInitializer(), "biases");

  // The wrong words are drawn by frequency: the vocabulary is sorted by it.
  const Output loss = ReduceMean(
      s, SampledSoftmaxLoss(s, {weights}, biases, labels, EmbeddingLookup(s, vectors, inputs),
                            kSampled, vocabulary.size()));
  AdagradOptimizer optimizer(0.3f);
  Node* train = optimizer.Minimize(s, loss);

  // To compare: cosines between the vectors of some words and all others.
  const Output query =
      ops::Placeholder(s.WithOpName("query"), ElementType::kInt32, {.shape = PartialShape({-1})});
  const Output lengths =
      ops::Sqrt(s, ops::Sum(s, ops::Square(s, vectors.value()), {1}, {.keep_dims = true}));
  const Output directions = ops::RealDiv(s, vectors.value(), lengths);
  const Output cosines =
      ops::MatMul(s, EmbeddingLookup(s, directions, query), directions, {.transpose_b = true});
  const auto nearest = ops::TopKV2(s, cosines, 6);
  Node* init = GlobalVariablesInitializer(s);
  corpus::OrDie(s.status());

  SessionOptions session_options;
  session_options.threads = options.threads;
  auto session = corpus::OrDie(Session::Create(s.graph(), session_options));
  corpus::OrDie(session->RunTargets({init}));
  const auto step = corpus::OrDie(session->MakeCallable({inputs, labels}, {loss}, {train}));
  Pairs pairs(words, vocabulary, options.seed);
  std::vector<int32_t> batch_inputs;
  std::vector<int64_t> batch_labels;
  double sum = 0;
  const int64_t report = std::max<int64_t>(1, options.steps / 10);
  for (int64_t i = 1; i <= options.steps; ++i) {
    pairs.Next(options.batch, &batch_inputs, &batch_labels);
    const std::vector<Tensor> feeds = {
        Tensor::Vector<int32_t>(batch_inputs),
        Tensor::FromValues<int64_t>(batch_labels, {options.batch, 1}).value()};
    Tensor value;
    corpus::OrDie(step(feeds, absl::MakeSpan(&value, 1)));
    sum += static_cast<double>(value.scalar<float>().value());
    if (i % report == 0) {
      std::printf("step %6lld  loss %.3f\n", static_cast<long long>(i),
                  sum / static_cast<double>(report));
      std::fflush(stdout);
      sum = 0;
    }
  }

  // Words that mean something in a licence, as far as they occur.
  std::vector<int32_t> queries;
  for (const char* word : {"software", "license", "copyright", "source", "you", "must", "modified",
                           "distribute", "patent", "warranty"}) {
    const auto it = vocabulary.ids.find(word);
    if (it != vocabulary.ids.end()) queries.push_back(it->second);
  }
  if (queries.empty()) queries = {0, 1, 2, 3, 4, 5};
  const auto result = corpus::OrDie(
      session->Run({{query, Tensor::Vector<int32_t>(queries)}}, {nearest.values, nearest.indices}));
  for (size_t q = 0; q < queries.size(); ++q) {
    std::printf("nearest to %-10s:", vocabulary.entries[queries[q]].c_str());
    for (int k = 0; k < 6; ++k) {
      const int32_t word = result[1].values<int32_t>().value()[q * 6 + k];
      if (word == queries[q]) continue;
      std::printf(" %s (%.2f)", vocabulary.entries[word].c_str(),
                  static_cast<double>(result[0].values<float>().value()[q * 6 + k]));
    }
    std::printf("\n");
  }
  return 0;
}
