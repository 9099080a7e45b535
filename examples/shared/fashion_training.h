// What the Fashion-MNIST examples share: options, the training loop and the test.

#ifndef TROUPE_EXAMPLES_SHARED_FASHION_TRAINING_H_
#define TROUPE_EXAMPLES_SHARED_FASHION_TRAINING_H_

#include <troupe/troupe.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "examples/shared/fashion_data.h"
#include "examples/shared/options.h"
#include "examples/shared/progress_bar.h"

namespace fashion {

using examples::Die;
using examples::ProgressBar;

struct Options : examples::Options {
  Options() : examples::Options{.steps = 6000, .batch = 100} {}
  int64_t show = 0;
  std::string data = kFolder;
  std::string records;  ///< Training images are written to this file, and read again; "": memory.
};

/// Reads the command line; `add_more` adds options that one example has besides.
Options ParseOptions(int argc, char** argv, const std::string& description,
                     const std::function<void(troupe::CommandLine& line)>& add_more = {},
                     const Options& defaults = {});

/// The tensors and nodes that the loop needs of a model.
struct Model {
  troupe::Output images;  ///< float [batch, 784], fed.
  troupe::Output labels;  ///< int32 [batch], fed.
  troupe::Output keep;    ///< Probability to keep a unit in dropout, fed; invalid if there is none.
  float keep_when_training = 1.0f;
  troupe::Output training;  ///< A scalar bool, fed; invalid if the model does not ask.
  troupe::Output logits;    ///< float [batch, 10].
  troupe::Output loss;      ///< A scalar.
  troupe::Node* train = nullptr;
};

/// What is fed for a batch of images to be learned.
troupe::FeedMap Feeds(const Model& model, const Dataset& data, absl::Span<const int32_t> batch);

/// The share of test images, in percent, that the model takes for what they are.
double Accuracy(troupe::Session& session, const Model& model, const Dataset& test);

/// Tests the model on the 10,000 test images and prints the accuracy as the last line, after `show`
/// of the images with what the model takes them for.
void TestAndPrint(troupe::Session& session, const Model& model, const Dataset& test, int64_t show);

/// Makes a session and trains the model in it, step by step.
std::unique_ptr<troupe::Session> Train(const troupe::Scope& scope, const Model& model,
                                       const Dataset& training, const Options& options,
                                       troupe::SessionOptions session_options = {});

/// Trains the model, tests it, and prints the accuracy.
int TrainAndTest(const troupe::Scope& scope, const Model& model, const Options& options,
                 troupe::SessionOptions session_options = {});

}  // namespace fashion

#endif  // TROUPE_EXAMPLES_SHARED_FASHION_TRAINING_H_
