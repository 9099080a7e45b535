#include "examples/shared/fashion_training.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

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
    std::printf("%s", Drawing(image, kSide).c_str());
    const float* row = logits.data<float>().value() + k * kClasses;
    const int guess = static_cast<int>(std::max_element(row, row + kClasses) - row);
    const int truth = test.labels[indices[k]];
    std::printf("  -> %s%s%s\n\n", kClassNames[guess], guess == truth ? "" : ", but it is a ",
                guess == truth ? "" : kClassNames[truth]);
  }
}

}  // namespace

troupe::FeedMap Feeds(const Model& model, const Dataset& data, absl::Span<const int32_t> batch) {
  troupe::FeedMap feeds = {{model.images, data.Images(batch)}, {model.labels, data.Labels(batch)}};
  if (model.keep.valid()) {
    feeds.emplace_back(model.keep, troupe::Tensor::Scalar(model.keep_when_training));
  }
  return feeds;
}

namespace {

/// The logits of some images.
troupe::Tensor Classify(troupe::Session& session, const Model& model, const Dataset& data,
                        absl::Span<const int32_t> indices) {
  troupe::FeedMap feed = {{model.images, data.Images(indices)}};
  if (model.keep.valid()) feed.emplace_back(model.keep, troupe::Tensor::Scalar(1.0f));
  return examples::OrDie(session.Run(feed, {model.logits}))[0];
}

}  // namespace

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

int TrainAndTest(const troupe::Scope& scope, const Model& model, const Options& options,
                 troupe::SessionOptions session_options) {
  if (!scope.ok()) Die(scope.status());
  troupe::Node* init = troupe::GlobalVariablesInitializer(scope);
  if (!scope.ok()) Die(scope.status());
  const Dataset training = ReadDataset(options.data, "train");
  const Dataset test = ReadDataset(options.data, "t10k");

  session_options.threads = options.threads;
  auto session = troupe::Session::Create(scope.graph(), session_options);
  if (!session.ok()) Die(session.status());
  if (absl::Status status = (*session)->RunTargets({init}); !status.ok()) Die(status);

  // The feeds, fetches and targets of a step never change: a callable looks them up once.
  std::vector<troupe::Output> feeds = {model.images, model.labels};
  if (model.keep.valid()) feeds.push_back(model.keep);
  auto step = (*session)->MakeCallable(feeds, {model.loss}, {model.train});
  if (!step.ok()) Die(step.status());
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
    if (model.keep.valid()) values.push_back(troupe::Tensor::Scalar(model.keep_when_training));
    troupe::Tensor loss;
    if (absl::Status status = (*step)(values, absl::MakeSpan(&loss, 1)); !status.ok()) Die(status);
    progress.Update(i, loss.scalar<float>().value());
  }
  TestAndPrint(**session, model, test, options.show);
  return 0;
}

}  // namespace fashion
