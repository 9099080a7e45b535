// Sentences in a record file, read in batches of about one length.
//
//     build/release/bin/text_records --steps 600
//
// Which license is a sentence from? The sentences are written to record files as Examples, which
// `troupe records --examples --head 3 FILE` shows. A `Dataset` reads, parses and shuffles them and
// puts those of about one length into one batch, padded to its longest. A gated recurrent unit (Cho
// et al. 2014) reads a sentence word by word; what it knows at the end decides. Its loop runs as
// often as the batch is long, so that buckets save time, too. Batches come by ops of the graph:
// those for the test end with OutOfRange. (bucketed_text.cc does the same with queues.)

#include <stdlib.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>

#include "examples/shared/text_corpus.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using corpus::OrDie;

constexpr int kSize = 32;   // Of a word's vector.
constexpr int kUnits = 64;  // Of what the network knows of a sentence so far.
constexpr int kMinWords = 3, kMaxWords = 60;

/// Writes the sentences of which `number % 10 == 0` is `test`, and says how many these are.
int64_t Write(const corpus::Sentences& sentences, bool test, const std::string& file) {
  const auto writer = OrDie(RecordWriter::Create(file));
  int64_t count = 0;
  for (size_t i = 0; i < sentences.words.size(); ++i) {
    if ((i % 10 == 0) != test) continue;
    OrDie(writer->Write(ExampleBuilder()
                            .Add("words", sentences.words[i])
                            .Add("text", sentences.labels[i])
                            .Serialize()));
    ++count;
  }
  OrDie(writer->Close());
  return count;
}

/// A record -> (words, their number, label).
absl::StatusOr<Tensors> Parse(const Tensors& record) {
  const auto example = ExampleReader::Parse(*record[0].scalar<std::string>());
  if (!example.ok()) return example.status();
  const auto words = example->Ints("words"), text = example->Ints("text");
  if (!words.ok()) return words.status();
  if (!text.ok() || text->size() != 1) return absl::InvalidArgumentError("no text is named");
  return Tensors{Tensor::Vector<int64_t>(*words),
                 Tensor::Scalar(static_cast<int64_t>(words->size())), Tensor::Scalar((*text)[0])};
}

/// Batches of words [batch, longest], lengths [batch] and labels [batch].
Dataset Bucketed(const Dataset& records, int64_t batch) {
  DatasetBucketOptions buckets;
  buckets.length = [](const Tensors& element) { return element[1].scalar<int64_t>(); };
  buckets.boundaries = {8, 12, 16, 24, 32, 48};
  buckets.batch_sizes = {batch};
  return records.Map(Parse).Bucket(buckets);
}

struct TextBatch {
  /// Of the dataset that is published as `name`.
  TextBatch(const Scope& s, const std::string& name) {
    const OutputList next = ops::DatasetIteratorNext(
        s, ops::DatasetIterator(s.WithOpName(name), name),
        {ElementType::kInt64, ElementType::kInt64, ElementType::kInt64},
        {.output_shapes = {PartialShape({-1, -1}), PartialShape({-1}), PartialShape({-1})}});
    words = next[0];
    lengths = next[1];
    labels = next[2];
  }
  Output words, lengths, labels;
};

class Model {
 public:
  Model(const Scope& s, int64_t num_words, int64_t num_classes)
      : vectors_(s, {num_words, kSize}, RandomUniformInitializer(-0.1, 0.1), "vectors"),
        gates_(s, {kSize + kUnits, 2 * kUnits}, GlorotUniformInitializer(), "gates"),
        gate_biases_(s, {2 * kUnits}, ConstantInitializer(1.0), "gate_biases"),
        candidate_(s, {kSize + kUnits, kUnits}, GlorotUniformInitializer(), "candidate"),
        weights_(s, {kUnits, num_classes}, GlorotUniformInitializer(), "weights"),
        biases_(s, {num_classes}, ZerosInitializer(), "biases") {}

  Output Logits(const Scope& s, const TextBatch& batch) const {
    // [time, batch, kSize], taken apart by time.
    const Output words = ops::Transpose(s, batch.words, {1, 0});
    const Output shape = ops::Shape(s, words);
    const auto size = [&](int32_t of) { return ops::Squeeze(s, ops::Slice(s, shape, {of}, {1})); };
    const Output longest = size(0);
    const TensorArray in = TensorArray(s, longest, ElementType::kFloat)
                               .Unstack(s, EmbeddingLookup(s, vectors_, words));
    const Output lengths = ops::ExpandDims(s, ops::Cast(s, batch.lengths, ElementType::kInt32), 1);
    const Output nothing = ops::Fill(s, ops::Pack(s, {size(1), kUnits}), 0.0f);
    const std::vector<Output> end = WhileLoop(
        s, {0, nothing},
        [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], longest); },
        [&](const Scope& s, absl::Span<const Output> v) {
          const Output time = v[0], known = v[1], word = in.Read(s, time);
          // How much of what is known is kept, and how much of it the candidate sees.
          const OutputList gates = ops::Split(
              s, 1,
              ops::Sigmoid(s, ops::BiasAdd(s, Times(s, word, known, gates_), gate_biases_.value())),
              2);
          const Output candidate =
              ops::Tanh(s, Times(s, word, ops::Mul(s, gates[1], known), candidate_));
          const Output change =
              ops::Mul(s, ops::Sub(s, 1.0f, gates[0]), ops::Sub(s, candidate, known));
          // Padding changes nothing.
          const Output there = ops::Cast(s, ops::Less(s, time, lengths), ElementType::kFloat);
          return std::vector<Output>{ops::Add(s, time, 1),
                                     ops::Add(s, known, ops::Mul(s, there, change))};
        },
        {.shape_invariants = {PartialShape({}), PartialShape({-1, kUnits})}});
    if (!s.ok()) return {};
    return ops::BiasAdd(s, ops::MatMul(s, end[1], weights_.value()), biases_.value());
  }

 private:
  static Output Times(const Scope& s, const Output& word, const Output& known,
                      const ModelVariable& matrix) {
    return ops::MatMul(s, ops::ConcatV2(s, std::vector<Output>{word, known}, 1), matrix.value());
  }
  ModelVariable vectors_, gates_, gate_biases_, candidate_, weights_, biases_;
};

}  // namespace

int main(int argc, char** argv) {
  const corpus::Options options = corpus::ParseOptions(
      argc, argv, "Sentences of record files in buckets by length: which text are they from?",
      {.steps = 600, .batch = 32});
  std::string folder = std::filesystem::temp_directory_path() / "troupe_sentences_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) corpus::Die(absl::ErrnoToStatus(errno, folder));
  const std::string training_file = folder + "/training.tfrecord",
                    test_file = folder + "/test.tfrecord";
  const corpus::Sentences sentences = corpus::ReadSentences(options.texts, kMinWords, kMaxWords);
  const int64_t count = Write(sentences, false, training_file);
  std::printf("%" PRId64 " sentences to learn from, of %zu texts\n", count, options.texts.size());
  Write(sentences, true, test_file);

  const PublishedDataset training = OrDie(PublishDataset(
      "training",
      Bucketed(Dataset::Records({training_file})
                   .Shuffle({.window = count, .seed = static_cast<uint64_t>(options.seed)})
                   .Repeat(),
               options.batch)));
  const PublishedDataset test =
      OrDie(PublishDataset("test", Bucketed(Dataset::Records({test_file}), options.batch)));

  const Scope s = Scope::NewRoot();
  s.SetGraphSeed(options.seed);
  const TextBatch training_batch(s, "training"), test_batch(s, "test");
  const Model model(s, sentences.num_words, static_cast<int64_t>(options.texts.size()));
  const Output loss = ReduceMean(s, ops::SparseSoftmaxCrossEntropyWithLogits(
                                        s, model.Logits(s, training_batch), training_batch.labels)
                                        .loss);
  // How much of the batch is words.
  const Output used =
      ops::RealDiv(s, ops::Cast(s, ops::Sum(s, training_batch.lengths, {0}), ElementType::kFloat),
                   ops::Cast(s, ops::Size(s, training_batch.words), ElementType::kFloat));
  AdamOptimizer optimizer(0.005f);
  Node* const train =
      optimizer.ApplyGradients(s, ClipByGlobalNorm(s, optimizer.ComputeGradients(s, loss), 5.0f));
  const Output accuracy = Accuracy(s, model.Logits(s, test_batch), test_batch.labels);
  Node* const init = GlobalVariablesInitializer(s);
  OrDie(s.status());

  const auto session = OrDie(Session::Create(s.graph(), {.threads = options.threads}));
  OrDie(session->RunTargets({init}));
  double sum = 0, words = 0;
  const int64_t report = std::max<int64_t>(1, options.steps / 5);
  for (int64_t i = 1; i <= options.steps; ++i) {
    const auto values = OrDie(session->Run(FeedMap{}, {loss, used}, {train}));
    sum += static_cast<double>(*values[0].scalar<float>());
    words += static_cast<double>(*values[1].scalar<float>());
    if (i % report == 0) {
      std::printf("step %6" PRId64 "  loss %.3f\n", i, sum / static_cast<double>(report));
      sum = 0;
    }
  }
  if (options.steps > 0) {
    std::printf("padding: %.1f %%\n", 100 - 100 * words / static_cast<double>(options.steps));
  }

  double right = 0, seen = 0;
  while (true) {
    const auto values = session->Run({accuracy, test_batch.lengths});
    if (absl::IsOutOfRange(values.status())) break;  // All of them have been seen.
    OrDie(values.status());
    const auto n = static_cast<double>((*values)[1].num_elements());
    right += n * static_cast<double>(*(*values)[0].scalar<float>());
    seen += n;
  }
  std::printf("test accuracy: %.2f %% of %.0f sentences\n", 100 * right / seen, seen);
  std::filesystem::remove_all(folder);
  return 0;
}
