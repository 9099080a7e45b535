// What the Fashion-MNIST examples share: options, data, the training loop with its progress bar.

#ifndef TROUPE_EXAMPLES_FASHION_MNIST_H_
#define TROUPE_EXAMPLES_FASHION_MNIST_H_

#include <troupe/troupe.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace fashion {

inline constexpr int kSide = 28;
inline constexpr int kPixels = kSide * kSide;
inline constexpr int kClasses = 10;

struct Options {
  int64_t steps = 6000;
  int64_t batch = 100;
  int threads = 0;
  int64_t seed = 1;
  int64_t show = 0;
  std::string data = "/usr/share/datasets/fashion-mnist";
};

[[noreturn]] inline void Die(const absl::Status& status) {
  std::cerr << status << "\n";
  std::exit(1);
}

/// Options that one example has besides these: names with their defaults, which are replaced by the
/// values given.
using MoreOptions = std::map<std::string, std::string>;

/// Reads `--name value` and `--name=value`.
inline Options ParseOptions(int argc, char** argv, MoreOptions* more = nullptr) {
  Options options;
  auto usage = [&](const std::string& what) {
    std::cerr << what << "\nusage: " << argv[0]
              << " [--steps N] [--batch N] [--threads N] [--seed N] [--data DIR] [--show N]";
    if (more != nullptr) {
      for (const auto& [name, value] : *more) {
        std::cerr << " [" << name << " " << (value.empty() ? "..." : value) << "]";
      }
    }
    std::cerr << "\n";
    std::exit(2);
  };
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i], value;
    if (const size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      usage("option " + name + " needs a value");
    }
    if (name == "--data") {
      options.data = value;
      continue;
    }
    if (more != nullptr && more->count(name) != 0) {
      (*more)[name] = value;
      continue;
    }
    char* end = nullptr;
    const int64_t number = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || number < 0)
      usage("option " + name + ": no number: " + value);
    if (name == "--steps") {
      options.steps = number;
    } else if (name == "--batch" && number > 0) {
      options.batch = number;
    } else if (name == "--threads" && number <= 4096) {
      options.threads = static_cast<int>(number);
    } else if (name == "--seed") {
      options.seed = number;
    } else if (name == "--show") {
      options.show = number;
    } else {
      usage("unknown or impossible option " + name + " " + value);
    }
  }
  return options;
}

/// The number that one of the more options is; the program ends if it is none within the limits.
inline int64_t Number(const MoreOptions& more, const std::string& name, int64_t least,
                      int64_t most = 1'000'000'000) {
  const std::string& text = more.at(name);
  char* end = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < least || number > most) {
    std::cerr << "option " << name << " must be a number from " << least << " to " << most
              << ", not '" << text << "'\n";
    std::exit(2);
  }
  return number;
}

/// Images and their labels as they lie in the files: a byte a pixel, a byte a label.
struct Dataset {
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
  int64_t size() const { return static_cast<int64_t>(labels.size()); }

  /// Images as float [n, 784] in [0, 1].
  troupe::Tensor Images(absl::Span<const int32_t> indices) const {
    troupe::Tensor images = troupe::Tensor::Uninitialized(
        troupe::ElementType::kFloat, {static_cast<int64_t>(indices.size()), kPixels});
    float* out = images.mutable_data<float>();
    for (int32_t index : indices) {
      const uint8_t* in = pixels.data() + static_cast<size_t>(index) * kPixels;
      for (int i = 0; i < kPixels; ++i) *out++ = static_cast<float>(in[i]) * (1.0f / 255.0f);
    }
    return images;
  }
  /// Labels as int32 [n].
  troupe::Tensor Labels(absl::Span<const int32_t> indices) const {
    troupe::Tensor result = troupe::Tensor::Uninitialized(troupe::ElementType::kInt32,
                                                          {static_cast<int64_t>(indices.size())});
    int32_t* out = result.mutable_data<int32_t>();
    for (int32_t index : indices) *out++ = labels[index];
    return result;
  }
};

/// Reads a gzipped IDX file (http://yann.lecun.com/exdb/mnist): big-endian sizes, then bytes.
inline std::vector<uint8_t> ReadIdx(const std::string& file, std::vector<int64_t> expected_tail) {
  gzFile in = gzopen(file.c_str(), "rb");
  if (in == nullptr) {
    Die(absl::NotFoundError(
        "cannot read " + file + ": " + std::strerror(errno) +
        ". Install Debian's package dataset-fashion-mnist, or name a folder that "
        "has the files with --data"));
  }
  auto read = [&](void* to, unsigned n) {
    if (gzread(in, to, n) != static_cast<int>(n)) Die(absl::DataLossError(file + " is cut short"));
  };
  uint8_t magic[4];
  read(magic, 4);
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] != expected_tail.size() + 1) {
    Die(absl::DataLossError(file + " is not the IDX file that was expected"));
  }
  uint64_t total = 1;
  for (size_t d = 0; d <= expected_tail.size(); ++d) {
    uint8_t b[4];
    read(b, 4);
    const uint64_t size = uint64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
    if (d > 0 && size != static_cast<uint64_t>(expected_tail[d - 1])) {
      Die(absl::DataLossError(file + " has images of another size"));
    }
    total *= size;
  }
  if (total > (1u << 30)) Die(absl::DataLossError(file + " claims more than a gigabyte"));
  std::vector<uint8_t> bytes(total);
  read(bytes.data(), static_cast<unsigned>(total));
  gzclose(in);
  return bytes;
}

inline Dataset ReadDataset(const std::string& folder, const std::string& part) {
  Dataset data;
  data.pixels = ReadIdx(folder + "/" + part + "-images-idx3-ubyte.gz", {kSide, kSide});
  data.labels = ReadIdx(folder + "/" + part + "-labels-idx1-ubyte.gz", {});
  if (data.pixels.size() != data.labels.size() * kPixels || data.labels.empty()) {
    Die(absl::DataLossError("images and labels of " + part + " do not match"));
  }
  return data;
}

/// Gives batches of a fresh shuffle every epoch.
class Batches {
 public:
  Batches(const Dataset& data, int64_t batch, int64_t seed)
      : data_(data), order_(data.size()), random_(static_cast<uint64_t>(seed)) {
    std::iota(order_.begin(), order_.end(), 0);
    batch_ = std::min(batch, data.size());
    next_ = data.size();
  }
  absl::Span<const int32_t> Next() {
    if (next_ + batch_ > data_.size()) {
      std::shuffle(order_.begin(), order_.end(), random_);
      next_ = 0;
    }
    next_ += batch_;
    return absl::MakeConstSpan(order_).subspan(next_ - batch_, batch_);
  }

 private:
  const Dataset& data_;
  std::vector<int32_t> order_;
  std::mt19937_64 random_;
  int64_t batch_;
  int64_t next_;
};

/// One line on the terminal that is written over; nothing if the output is no terminal.
class ProgressBar {
 public:
  explicit ProgressBar(int64_t total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  void Update(int64_t step, double loss) {
    if (!terminal_ || (step % 20 != 0 && step != total_)) return;
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(kWidth * step / std::max<int64_t>(total_, 1));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::fprintf(stderr, "\r[%s%s] step %lld of %lld  loss %7.3f  %5.0f steps/s ",
                 std::string(filled, '#').c_str(), std::string(kWidth - filled, '.').c_str(),
                 static_cast<long long>(step), static_cast<long long>(total_), loss,
                 static_cast<double>(step) / std::max(seconds, 1e-9));
    if (step == total_) std::fprintf(stderr, "\n");
  }

 private:
  int64_t total_;
  std::chrono::steady_clock::time_point start_;
  bool terminal_ = isatty(2) != 0;
};

/// The tensors and nodes that the loop needs of a model.
struct Model {
  troupe::Output images;  ///< float [batch, 784], fed.
  troupe::Output labels;  ///< int32 [batch], fed.
  troupe::Output keep;    ///< Probability to keep a unit in dropout, fed; invalid if there is none.
  float keep_when_training = 1.0f;
  troupe::Output logits;  ///< float [batch, 10].
  troupe::Output loss;    ///< A scalar.
  troupe::Node* train = nullptr;
};

/// Draws some test images as characters, with what the model takes them for.
inline void Show(const Dataset& test, absl::Span<const int32_t> indices,
                 const troupe::Tensor& logits) {
  static const char* const kNames[kClasses] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                               "sandal",  "shirt",   "sneaker",  "bag",   "boot"};
  static const char kInk[] = " .:-=+*#%@";
  for (size_t k = 0; k < indices.size(); ++k) {
    const uint8_t* image = test.pixels.data() + static_cast<size_t>(indices[k]) * kPixels;
    for (int y = 0; y < kSide; y += 2) {
      std::string line;
      for (int x = 0; x < kSide; ++x) {
        const int two_rows = image[y * kSide + x] + image[(y + 1) * kSide + x];
        line += kInk[two_rows * 9 / 510];
      }
      std::printf("  %s\n", line.c_str());
    }
    const float* row = logits.unchecked_data<float>() + k * kClasses;
    const int guess = static_cast<int>(std::max_element(row, row + kClasses) - row);
    const int truth = test.labels[indices[k]];
    std::printf("  -> %s%s%s\n\n", kNames[guess], guess == truth ? "" : ", but it is a ",
                guess == truth ? "" : kNames[truth]);
  }
}

/// What is fed for a batch of images to be learned.
inline troupe::FeedMap Feeds(const Model& model, const Dataset& data,
                             absl::Span<const int32_t> batch) {
  troupe::FeedMap feeds = {{model.images, data.Images(batch)}, {model.labels, data.Labels(batch)}};
  if (model.keep.valid()) {
    feeds.emplace_back(model.keep, troupe::Tensor::Scalar(model.keep_when_training));
  }
  return feeds;
}

/// Tests the model on the 10,000 test images and prints the accuracy as the last line, after `show`
/// of the images with what the model takes them for.
inline void TestAndPrint(troupe::Session& session, const Model& model, const Dataset& test,
                         int64_t show) {
  std::vector<int32_t> all(test.size());
  std::iota(all.begin(), all.end(), 0);
  auto classify = [&](absl::Span<const int32_t> indices) {
    troupe::FeedMap feed = {{model.images, test.Images(indices)}};
    if (model.keep.valid()) feed.emplace_back(model.keep, troupe::Tensor::Scalar(1.0f));
    auto logits = session.Run(feed, {model.logits});
    if (!logits.ok()) Die(logits.status());
    return (*logits)[0];
  };
  int64_t right = 0;
  for (int64_t begin = 0; begin < test.size(); begin += 1000) {
    const auto indices =
        absl::MakeConstSpan(all).subspan(begin, std::min<int64_t>(1000, test.size() - begin));
    const troupe::Tensor logits = classify(indices);
    for (size_t k = 0; k < indices.size(); ++k) {
      const float* row = logits.unchecked_data<float>() + k * kClasses;
      right += std::max_element(row, row + kClasses) - row == test.labels[indices[k]];
    }
  }
  if (show > 0) {
    const auto first = absl::MakeConstSpan(all).first(std::min<size_t>(show, all.size()));
    Show(test, first, classify(first));
  }
  std::printf("test accuracy: %.2f %%\n",
              100.0 * static_cast<double>(right) / static_cast<double>(test.size()));
}

/// Trains the model step by step in one session, and tests it.
inline int TrainAndTest(const troupe::Scope& scope, const Model& model, const Options& options,
                        troupe::SessionOptions session_options = {}) {
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
  ProgressBar progress(options.steps);
  for (int64_t i = 1; i <= options.steps; ++i) {
    const absl::Span<const int32_t> batch = batches.Next();
    std::vector<troupe::Tensor> values = {training.Images(batch), training.Labels(batch)};
    if (model.keep.valid()) values.push_back(troupe::Tensor::Scalar(model.keep_when_training));
    troupe::Tensor loss;
    if (absl::Status status = (*step)(values, absl::MakeSpan(&loss, 1)); !status.ok()) Die(status);
    progress.Update(i, loss.unchecked_scalar<float>());
  }
  TestAndPrint(**session, model, test, options.show);
  return 0;
}

}  // namespace fashion

#endif  // TROUPE_EXAMPLES_FASHION_MNIST_H_
