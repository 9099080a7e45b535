#include "examples/shared/fashion_training.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "examples/shared/picture.h"

namespace fashion {

Options ParseOptions(int argc, char** argv, const std::string& description,
                     const std::function<void(troupe::CommandLine& line)>& add_more,
                     const Options& defaults) {
  Options options = defaults;
  examples::CommandLine line(argv, description, &options);
  troupe::AddValue(&line, "--data DIR", &options.data, "Where the four files of the data are");
  troupe::AddValue(&line, "--show N", &options.show, "Draws so many test images at the end")
      ->check(troupe::WholeNumber(0, 10'000));
  if (add_more) add_more(line);
  line.ReadOrExit(argc, argv);
  return options;
}

namespace {

/// Draws some test images as characters, with what the model takes them for.
void Show(const Dataset& test, absl::Span<const int32_t> indices, const troupe::Tensor& logits) {
  for (size_t k = 0; k < indices.size(); ++k) {
    const auto image = absl::MakeConstSpan(test.pixels)
                           .subspan(static_cast<size_t>(indices[k]) * kPixels, kPixels);
    examples::DrawPicture(image, kSide);
    const float* row = logits.data<float>().value() + k * kClasses;
    const int guess = static_cast<int>(std::max_element(row, row + kClasses) - row);
    const int truth = test.labels[indices[k]];
    std::printf("  -> %s%s%s\n\n", kClassNames[guess], guess == truth ? "" : ", but it is a ",
                guess == truth ? "" : kClassNames[truth]);
  }
}

/// What is fed besides images and labels.
troupe::FeedMap Switches(const Model& model, bool training) {
  troupe::FeedMap feeds;
  if (model.keep.valid()) {
    feeds.emplace_back(model.keep,
                       troupe::Tensor::Scalar(training ? model.keep_when_training : 1.0f));
  }
  if (model.training.valid()) feeds.emplace_back(model.training, troupe::Tensor::Scalar(training));
  return feeds;
}

/// The logits of some images.
troupe::Tensor Classify(troupe::Session& session, const Model& model, const Dataset& data,
                        absl::Span<const int32_t> indices) {
  troupe::FeedMap feeds = Switches(model, false);
  feeds.emplace_back(model.images, data.Images(indices));
  return examples::OrDie(session.Run(feeds, {model.logits}))[0];
}

}  // namespace

troupe::FeedMap Feeds(const Model& model, const Dataset& data, absl::Span<const int32_t> batch) {
  troupe::FeedMap feeds = Switches(model, true);
  feeds.emplace_back(model.images, data.Images(batch));
  feeds.emplace_back(model.labels, data.Labels(batch));
  return feeds;
}

double Accuracy(troupe::Session& session, const Model& model, const Dataset& test) {
  std::vector<int32_t> all(test.size());
  std::iota(all.begin(), all.end(), 0);
  int64_t right = 0;
  for (int64_t begin = 0; begin < test.size(); begin += 1000) {
    const auto indices =
        absl::MakeConstSpan(all).subspan(begin, std::min<int64_t>(1000, test.size() - begin));
    const troupe::Tensor logits = Classify(session, model, test, indices);
    for (size_t k = 0; k < indices.size(); ++k) {
      const float* row = logits.data<float>().value() + k * kClasses;
      right += std::max_element(row, row + kClasses) - row == test.labels[indices[k]];
    }
  }
  return 100.0 * static_cast<double>(right) / static_cast<double>(test.size());
}

void TestAndPrint(troupe::Session& session, const Model& model, const Dataset& test, int64_t show) {
  const double accuracy = Accuracy(session, model, test);
  if (show > 0) {
    std::vector<int32_t> first(std::min(show, test.size()));
    std::iota(first.begin(), first.end(), 0);
    Show(test, first, Classify(session, model, test, first));
  }
  std::printf("test accuracy: %.2f %%\n", accuracy);
}

std::unique_ptr<troupe::Session> Train(const troupe::Scope& scope, const Model& model,
                                       const Dataset& training, const Options& options,
                                       troupe::SessionOptions session_options) {
  troupe::Node* init = troupe::GlobalVariablesInitializer(scope);
  examples::OrDie(scope.status());
  session_options.threads = options.threads;
  auto session = examples::OrDie(troupe::Session::Create(scope.graph(), session_options));
  examples::OrDie(session->RunTargets({init}));

  // The feeds, fetches and targets of a step never change: a callable looks them up once.
  std::vector<troupe::Output> feeds = {model.images, model.labels};
  std::vector<troupe::Tensor> switches;
  for (const auto& [output, value] : Switches(model, true)) {
    feeds.push_back(output);
    switches.push_back(value);
  }
  const auto step = examples::OrDie(session->MakeCallable(feeds, {model.loss}, {model.train}));
  Batches batches(training, options.batch, options.seed);
  std::unique_ptr<troupe::DatasetIterator> records;
  if (!options.records.empty()) {
    WriteRecords(training, options.records);
    records =
        examples::OrDie(RecordBatches(options.records, options.batch, options.seed).MakeIterator());
  }
  ProgressBar progress(options.steps);
  for (int64_t i = 1; i <= options.steps; ++i) {
    std::vector<troupe::Tensor> values;
    if (records != nullptr) {
      examples::OrDie(records->Next(&values));
    } else {
      const absl::Span<const int32_t> batch = batches.Next();
      values = {training.Images(batch), training.Labels(batch)};
    }
    values.insert(values.end(), switches.begin(), switches.end());
    troupe::Tensor loss;
    examples::OrDie(step(values, absl::MakeSpan(&loss, 1)));
    progress.Update(i, loss.scalar<float>().value());
  }
  return session;
}

int TrainAndTest(const troupe::Scope& scope, const Model& model, const Options& options,
                 troupe::SessionOptions session_options) {
  const auto session =
      Train(scope, model, ReadDataset(options.data, "train"), options, std::move(session_options));
  TestAndPrint(*session, model, ReadDataset(options.data, "t10k"), options.show);
  return 0;
}

}  // namespace fashion
