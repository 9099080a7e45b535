// Sentences of any length, in batches that are hardly wider than they must be.
//
//     build/release/bin/bucketed_text --steps 1500
//
// Which license is a sentence from? The input is a pipeline of queues: a producer that shuffles
// rows, a slice of the words, and buckets by length. A batch is padded to its own longest sentence,
// so that what is computed for nothing is a small part. A second pipeline gives the sentences that
// were kept aside, once; its end is OutOfRange.

#include <cinttypes>
#include <cstdio>

#include "examples/shared/text_corpus.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial

constexpr int kSize = 32;      // Of a word's vector.
constexpr int kMinWords = 3;   // Shorter sentences say nothing.
constexpr int kMaxWords = 80;  // Longer ones are lists.
const std::vector<int32_t> kBoundaries = {8, 12, 16, 24, 32, 48};

/// Where sentences are among the words of all of them.
struct Rows {
  std::vector<int32_t> begins, lengths, labels;

  void Add(int32_t begin, int32_t length, int32_t label) {
    begins.push_back(begin);
    lengths.push_back(length);
    labels.push_back(label);
  }
};

/// The words of all sentences one after another. Every tenth sentence is kept aside.
struct Corpus {
  explicit Corpus(const std::vector<std::string>& files) {
    const corpus::Sentences all = corpus::ReadSentences(files, kMinWords, kMaxWords);
    num_words = all.num_words;
    for (size_t i = 0; i < all.words.size(); ++i) {
      Rows& part = i % 10 == 0 ? test : training;
      part.Add(static_cast<int32_t>(ids.size()), static_cast<int32_t>(all.words[i].size()),
               all.labels[i]);
      ids.insert(ids.end(), all.words[i].begin(), all.words[i].end());
    }
  }

  std::vector<int32_t> ids;
  int64_t num_words = 0;
  Rows training, test;
};

/// The pipeline: batches of sentences of like length.
struct Batches {
  Batches(const Scope& s, const Output& ids, const Rows& sentences, int32_t batch,
          const ProducerOptions& order, const BucketOptions& buckets) {
    const OutputList row = SliceInputProducer(
        s,
        {Tensor::Vector<int32_t>(sentences.begins), Tensor::Vector<int32_t>(sentences.lengths),
         Tensor::Vector<int32_t>(sentences.labels)},
        order);
    const Output words =
        ops::Slice(s, ids, ops::Reshape(s, row[0], {1}), ops::Reshape(s, row[1], {1}));
    const LengthBatch made =
        BucketByLength(s, row[1], {words, row[2]}, {batch}, kBoundaries, buckets);
    lengths = made.lengths;
    words_of = made.tensors[0];
    labels = made.tensors[1];
    // How much of the batch is padding.
    const Output used =
        ops::Cast(s, ops::Sum(s, lengths, Tensor::Vector<int32_t>({0})), ElementType::kFloat);
    const Output all = ops::Cast(s, ops::Size(s, words_of), ElementType::kFloat);
    padding = ops::Sub(s, 1.0f, ops::RealDiv(s, used, all));
  }
  Output lengths, words_of, labels, padding;
};

/// The mean of a sentence's words decides.
class Model {
 public:
  Model(const Scope& s, int64_t num_words, int64_t num_classes)
      : vectors_(s, {num_words, kSize}, RandomUniformInitializer(-0.1, 0.1), "vectors"),
        weights_(s, {kSize, num_classes}, GlorotUniformInitializer(), "weights"),
        biases_(s, {num_classes}, ZerosInitializer(), "biases") {}

  Output Logits(const Scope& s, const Batches& batch) const {
    const Output width = ops::Squeeze(s, ops::Slice(s, ops::Shape(s, batch.words_of), {1}, {1}));
    const Output places = ops::Range(s, 0, width, 1);
    const Output there = ops::Cast(s, ops::Less(s, places, ops::ExpandDims(s, batch.lengths, 1)),
                                   ElementType::kFloat);
    const Output words =
        ops::Mul(s, EmbeddingLookup(s, vectors_, batch.words_of), ops::ExpandDims(s, there, 2));
    const Output length = ops::Cast(s, ops::ExpandDims(s, batch.lengths, 1), ElementType::kFloat);
    const Output mean = ops::RealDiv(s, ops::Sum(s, words, {1}), length);
    return ops::BiasAdd(s, ops::MatMul(s, mean, weights_.value()), biases_.value());
  }

 private:
  ModelVariable vectors_, weights_, biases_;
};

}  // namespace

int main(int argc, char** argv) {
  const corpus::Options options =
      corpus::ParseOptions(argc, argv, "Sentences in buckets by length: which text are they from?",
                           {.steps = 1500, .batch = 32});
  const Corpus text(options.texts);
  if (text.training.labels.empty() || text.test.labels.empty()) {
    corpus::Die(absl::InvalidArgumentError("the texts have too few sentences"));
  }
  std::printf("%zu sentences from %zu texts\n",
              text.training.labels.size() + text.test.labels.size(), options.texts.size());

  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const Output ids = ops::Const(s.WithOpName("ids"), Tensor::Vector<int32_t>(text.ids));
  const auto size = static_cast<int32_t>(options.batch);
  const Batches training(s.NewSubScope("training"), ids, text.training, size,
                         {.seed = options.seed}, {.num_threads = 2, .dynamic_pad = true});
  const Batches test(s.NewSubScope("test"), ids, text.test, size,
                     {.num_epochs = 1, .shuffle = false},
                     {.dynamic_pad = true, .allow_smaller_final_batch = true});
  const Model model(s, text.num_words, static_cast<int64_t>(options.texts.size()));
  const Output logits = model.Logits(s, training);
  const Output loss =
      ReduceMean(s, ops::SparseSoftmaxCrossEntropyWithLogits(s, logits, training.labels).loss);
  AdamOptimizer optimizer(0.01f);
  Node* const train = optimizer.Minimize(s, loss);
  const Output accuracy = Accuracy(s, model.Logits(s, test), test.labels);
  Node* const init = GlobalVariablesInitializer(s);
  Node* const local_init = LocalVariablesInitializer(s);
  corpus::OrDie(s.status());

  const auto session = corpus::OrDie(Session::Create(s.graph(), {.threads = options.threads}));
  corpus::OrDie(session->RunTargets({init, local_init}));
  Coordinator coordinator;
  corpus::OrDie(StartQueueRunners(*session, coordinator));
  const auto step = corpus::OrDie(session->MakeCallable({}, {loss, training.padding}, {train}));
  double sum = 0, padding = 0;
  const int64_t report = std::max<int64_t>(1, options.steps / 5);
  for (int64_t i = 1; i <= options.steps; ++i) {
    Tensor values[2];
    corpus::OrDie(step({}, absl::MakeSpan(values)));
    sum += static_cast<double>(*values[0].scalar<float>());
    padding += static_cast<double>(*values[1].scalar<float>());
    if (i % report == 0) {
      std::printf("step %6" PRId64 "  loss %.3f\n", i, sum / static_cast<double>(report));
      sum = 0;
    }
  }
  if (options.steps > 0) {
    std::printf("padding: %.1f %%\n", 100 * padding / static_cast<double>(options.steps));
  }

  double right = 0, seen = 0;
  while (true) {
    const auto values = session->Run({accuracy, test.lengths});
    if (absl::IsOutOfRange(values.status())) break;  // All of them have been seen.
    corpus::OrDie(values.status());
    const auto n = static_cast<double>((*values)[1].num_elements());
    right += n * static_cast<double>(*(*values)[0].scalar<float>());
    seen += n;
  }
  std::printf("test accuracy: %.2f %% of %.0f sentences\n", 100 * right / seen, seen);
  coordinator.RequestStop();
  corpus::OrDie(coordinator.Join());
  return 0;
}
